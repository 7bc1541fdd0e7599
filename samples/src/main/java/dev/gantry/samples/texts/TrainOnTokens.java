// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.texts;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.training.tracker.Tracker;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.ShardDataset;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.nio.file.Path;

/// Trains a model to predict the next token, on blocks of tokens. The model here is the smallest
/// possible: one matrix of the scores of each token to follow each other token. Replace it by your
/// own.
///
/// `./gantry convert --tokens 129 --tokenizer tokenizer.json corpus.jsonl SHARDS` writes the
/// blocks. `VOCABULARY` is the number of tokens in the tokenizer:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainOnTokens.java SHARDS VOCABULARY
/// ```
public final class TrainOnTokens {
  private static final int EPOCHS = 3;

  private TrainOnTokens() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainOnTokens.java SHARDS VOCABULARY", arguments);
    int vocabulary = Integer.parseInt(arguments[1]);
    Loss loss = Loss.softmaxCrossEntropyLoss();
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(loss)
            .optOptimizer(Adam.builder().optLearningRateTracker(Tracker.fixed(0.1f)).build());
    try (ShardDataset blocks = blocks(Path.of(arguments[0]));
        Model model = Model.newInstance("bigrams")) {
      model.setBlock(Linear.builder().setUnits(vocabulary).build());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(1, 1, vocabulary));
        for (int epoch = 0; epoch < EPOCHS; epoch++) {
          float last = 0;
          for (Batch batch : trainer.iterateDataset(blocks)) {
            try (batch) {
              last = step(trainer, batch, vocabulary);
            }
          }
          System.out.printf("perplexity: %.2f%n", Math.exp(last));
        }
      }
    }
  }

  private static ShardDataset blocks(Path shards) {
    return ShardDataset.builder().setPath(shards).setSampling(8).optShuffle(42).build();
  }

  /// Each token except the last is an input, and the next token is its label.
  private static float step(Trainer trainer, Batch batch, int vocabulary) {
    NDArray tokens = batch.getData().singletonOrThrow();
    NDArray inputs = tokens.get(":, :-1").oneHot(vocabulary, DataType.FLOAT32);
    NDArray labels = tokens.get(":, 1:");
    float value;
    try (GradientCollector gradients = trainer.newGradientCollector()) {
      NDList scores =
          new NDList(trainer.forward(new NDList(inputs)).head().reshape(-1, vocabulary));
      NDArray loss = trainer.getLoss().evaluate(new NDList(labels.flatten()), scores);
      gradients.backward(loss);
      value = loss.getFloat();
    }
    trainer.step();
    return value;
  }
}
