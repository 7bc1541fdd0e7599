// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.datasets;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.ShardDataset;
import dev.gantry.samples.TrainFromShards;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.util.Set;

/// Trains on nine tenths of a dataset, in which each class comes equally often, and validates on the others.
///
/// `FOLDER` is what WriteShards wrote:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainAndValidate.java FOLDER
/// ```
public final class TrainAndValidate {
  private TrainAndValidate() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainAndValidate.java FOLDER", arguments);
    try (ShardDataset train = images(arguments[0], 0).optBalanced(7, "label").build();
        ShardDataset validation = images(arguments[0], 1).build();
        Model model = Model.newInstance("images")) {
      System.out.println(
          train.size().orElseThrow() + " samples, and " + validation.size().orElseThrow());
      model.setBlock(TrainFromShards.block());
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optOptimizer(Adam.builder().build())
              .addEvaluator(new Accuracy())
              .addTrainingListeners(new EvaluatorTrainingListener());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(1, 1, 16, 16));
        EasyTrain.fit(trainer, 3, train, validation);
        System.out.println(
            "accuracy: " + trainer.getTrainingResult().getValidateEvaluation("Accuracy"));
      }
    }
  }

  /// @param part 0 is for training, 1 for validation: no sample is in both
  private static ShardDataset.Builder images(String folder, int part) {
    Set<Long> wanted = Set.of(0L, 1L, 2L, 3L, 4L);
    return ShardDataset.builder()
        .setPath(folder)
        .optFilter("label", wanted::contains)
        .optSplit(42, part, 9, 1)
        .setSampling(32)
        .optNormalize("image", 1 / 255f, 0);
  }
}
