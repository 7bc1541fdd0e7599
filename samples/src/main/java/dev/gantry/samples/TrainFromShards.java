// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.Blocks;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.ShardDataset;
import java.io.IOException;
import java.nio.file.Path;

/// Trains a network from raw tensor shards, with a training loop of its own.
///
/// `FOLDER` is what WriteShards wrote:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainFromShards.java FOLDER
/// ```
public final class TrainFromShards {
  private static final int EPOCHS = 3;

  private TrainFromShards() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainFromShards.java FOLDER", arguments);
    try (ShardDataset train = images(Path.of(arguments[0]));
        Model model = Model.newInstance("images")) {
      model.setBlock(block());
      System.out.println("accuracy: " + train(model, train));
    }
  }

  /// Batches in random order, read ahead to the device that the trainer uses.
  public static ShardDataset images(Path folder) {
    return ShardDataset.builder()
        .setPath(folder)
        .setSampling(32)
        .optShuffle(42)
        .optNormalize("image", 1 / 255f, 0)
        .build();
  }

  /// Photographs of (height, width, 3) bytes, as networks that were trained on ImageNet take them:
  /// (3, height, width) numbers, less the mean and divided by the standard deviation of each colour.
  static ShardDataset photographs(Path folder) {
    float[] mean = {0.485f, 0.456f, 0.406f};
    float[] std = {0.229f, 0.224f, 0.225f};
    float[] scale = new float[3];
    float[] shift = new float[3];
    for (int i = 0; i < 3; i++) {
      scale[i] = 1 / (255 * std[i]);
      shift[i] = -mean[i] / std[i];
    }
    return ShardDataset.builder()
        .setPath(folder)
        .setSampling(32)
        .optShuffle(42)
        .optNormalize("image", scale, shift, DataType.FLOAT16)
        .optChannelsFirst("image")
        .build();
  }

  public static Block block() {
    return new SequentialBlock()
        .add(Blocks.batchFlattenBlock())
        .add(Linear.builder().setUnits(32).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(10).build());
  }

  /// @return the accuracy in the last epoch
  static float train(Model model, Dataset train) throws IOException, TranslateException {
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .optOptimizer(Adam.builder().build())
            .addEvaluator(new Accuracy())
            .addTrainingListeners(new EvaluatorTrainingListener());
    try (Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 1, 16, 16));
      for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (Batch batch : trainer.iterateDataset(train)) {
          try (batch) {
            EasyTrain.trainBatch(trainer, batch);
            trainer.step();
          }
        }
        trainer.notifyListeners(listener -> listener.onEpoch(trainer));
      }
      return trainer.getTrainingResult().getTrainEvaluation("Accuracy");
    }
  }
}
