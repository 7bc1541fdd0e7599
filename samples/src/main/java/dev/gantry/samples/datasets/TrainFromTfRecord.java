// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.datasets;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EpochTrainingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.samples.Usage;
import java.io.IOException;

/// Trains a network from TFRecord files by DJL's EasyTrain.
///
/// `FOLDER` is what WriteTfRecord wrote. The first run builds an index beside each file; with it,
/// samples come in random order and by large reads:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainFromTfRecord.java FOLDER
/// ```
public final class TrainFromTfRecord {
  private static final int EPOCHS = 5;

  private TrainFromTfRecord() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainFromTfRecord.java FOLDER", arguments);
    try (TfRecordDataset train = vectors(arguments[0]);
        Model model = Model.newInstance("vectors")) {
      model.setBlock(block());
      System.out.println("accuracy: " + train(model, train));
    }
  }

  static TfRecordDataset vectors(String folder) {
    return TfRecordDataset.builder()
        .setPath(folder)
        .addFeature(FeatureSpec.floats("vector", 64))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(IndexUse.BUILD)
        .setSampling(32)
        .optShuffle(42)
        .build();
  }

  static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(32).build())
        .add(Activation.reluBlock())
        .add(Linear.builder().setUnits(10).build());
  }

  /// @return the accuracy in the last epoch
  static float train(Model model, TfRecordDataset train) throws IOException, TranslateException {
    DefaultTrainingConfig config =
        new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
            .optOptimizer(Adam.builder().build())
            .addEvaluator(new Accuracy())
            .addTrainingListeners(new EpochTrainingListener(), new EvaluatorTrainingListener());
    try (Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 64));
      EasyTrain.fit(trainer, EPOCHS, train, null);
      return trainer.getTrainingResult().getTrainEvaluation("Accuracy");
    }
  }
}
