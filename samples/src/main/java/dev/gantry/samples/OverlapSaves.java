// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Batch;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveMode;
import java.io.IOException;
import java.nio.file.Path;

/// Saves in a training loop of your own. A snapshot is taken while the next batch is computed.
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' OverlapSaves.java FOLDER
/// ```
public final class OverlapSaves {
  private OverlapSaves() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("OverlapSaves.java FOLDER", arguments);
    Path folder = Path.of(arguments[0]);
    try (Model model = Model.newInstance("points")) {
      model.setBlock(Linear.builder().setUnits(10).build());
      DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.l2Loss());
      train(model, config, folder, SaveAndResume.samples(model.getNDManager()));
    }
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      saver.list().forEach(checkpoint -> System.out.println("step " + checkpoint.step()));
    }
  }

  /// Trains `model`, whose input is `[n, 64]`, for one epoch.
  public static void train(Model model, DefaultTrainingConfig config, Path folder, Dataset train)
      throws IOException, TranslateException {
    try (Trainer trainer = model.newTrainer(config);
        CheckpointSaver saver =
            CheckpointSaver.builder().setPath(folder).optMode(SaveMode.OVERLAPPED).build()) {
      trainer.initialize(new Shape(1, 64));
      // In the background: the memory of snapshots.
      var _ = saver.prepare(model, trainer);

      long step = 0;
      for (Batch batch : trainer.iterateDataset(train)) {
        EasyTrain.trainBatch(trainer, batch);
        // Waits for the snapshot that was begun after the last step, if there was one.
        trainer.step();
        batch.close();
        step++;
        if (step % 4 == 0) {
          // A failed save is thrown by the next call.
          var _ = saver.save(step, model, trainer);
        }
      }
    }
  }
}
