// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Activation;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.RestoreRequest;
import dev.gantry.djl.RestoredTraining;
import java.io.IOException;
import java.nio.file.Path;

/// Continues from a checkpoint with a new head. The body's parameters are restored and frozen; the
/// last layer, which has other classes, is trained from random values.
///
/// The program first saves the checkpoint of a classifier of ten classes to `FOLDER`, and then
/// continues from it with two classes:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' NewHead.java FOLDER
/// ```
public final class NewHead {
  private NewHead() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("NewHead.java FOLDER", arguments);
    Path folder = Path.of(arguments[0]);
    try (Model model = Model.newInstance("ten")) {
      model.setBlock(block(10));
      train(model, folder, samples(model.getNDManager(), 10));
    }
    try (Model model = Model.newInstance("two")) {
      model.setBlock(block(2));
      RestoredTraining restored = fineTune(model, folder, samples(model.getNDManager(), 2));
      System.out.println("from step " + restored.step());
      restored.skipped().forEach((path, reason) -> System.out.println(path + ": " + reason));
    }
  }

  /// Returns a body and a head with this number of classes.
  static Block block(int classes) {
    Block body =
        new SequentialBlock()
            .add(Linear.builder().setUnits(32).build())
            .add(Activation.reluBlock());
    return new SequentialBlock().add(body).add(Linear.builder().setUnits(classes).build());
  }

  private static void train(Model model, Path folder, Dataset train)
      throws IOException, TranslateException {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build();
        Trainer trainer = model.newTrainer(config())) {
      trainer.initialize(new Shape(1, 64));
      long steps = epoch(trainer, train);
      var _ = saver.save(steps, model, trainer);
    }
  }

  static RestoredTraining fineTune(Model model, Path folder, Dataset train)
      throws IOException, TranslateException {
    // Before the trainer copies the parameters to its devices.
    model.getBlock().getChildren().valueAt(0).freezeParameters(true);
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build();
        Trainer trainer = model.newTrainer(config())) {
      trainer.initialize(new Shape(1, 64));
      RestoredTraining restored =
          saver
              .restore(
                  RestoreRequest.builder()
                      .setModel(model)
                      .optTrainer(trainer)
                      // The head has another shape, and stays random.
                      .optSkipMismatched(true)
                      // This training begins anew, with an optimizer of its own.
                      .optOptimizer(false)
                      .build())
              .orElseThrow();
      var _ = epoch(trainer, train);
      return restored;
    }
  }

  private static DefaultTrainingConfig config() {
    return new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss());
  }

  /// @return how many steps the epoch had
  private static long epoch(Trainer trainer, Dataset train) throws IOException, TranslateException {
    long steps = 0;
    for (Batch batch : trainer.iterateDataset(train)) {
      try (batch) {
        EasyTrain.trainBatch(trainer, batch);
        trainer.step();
        steps++;
      }
    }
    return steps;
  }

  /// Stands for your own samples.
  static Dataset samples(NDManager manager, int classes) {
    return new ArrayDataset.Builder()
        .setData(manager.randomNormal(new Shape(256, 64)))
        .optLabels(manager.randomInteger(0, classes, new Shape(256), DataType.INT64))
        .setSampling(32, true)
        .build();
  }
}
