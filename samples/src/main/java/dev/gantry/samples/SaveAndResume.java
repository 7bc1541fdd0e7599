// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.ArrayDataset;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointListener;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.RestoredTraining;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/// Saves a checkpoint after each epoch while the training continues, and resumes from the latest.
///
/// Run it with 3 epochs, then with 5: the second run makes two more. You may kill it at any time:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' SaveAndResume.java FOLDER EPOCHS
/// ```
public final class SaveAndResume {
  private SaveAndResume() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("SaveAndResume.java FOLDER EPOCHS", arguments);
    Path folder = Path.of(arguments[0]);
    int epochs = Integer.parseInt(arguments[1]);
    try (Model model = Model.newInstance("points")) {
      model.setBlock(Linear.builder().setUnits(10).build());
      DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.l2Loss());
      train(model, config, folder, samples(model.getNDManager()), epochs);
    }
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      saver.list().forEach(checkpoint -> System.out.println("step " + checkpoint.step()));
    }
  }

  /// Trains `model`, whose input is `[n, 64]`, until it has seen `train` so many times, counting
  /// what an earlier process did.
  public static void train(
      Model model, DefaultTrainingConfig config, Path folder, Dataset train, int epochs)
      throws IOException, TranslateException {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).optKeepLast(3).build();
        Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 64));
      CheckpointListener.Builder listener =
          CheckpointListener.builder().setSaver(saver).optEveryEpochs(1);

      // Empty the first time; after a crash, where the latest checkpoint was saved.
      Optional<RestoredTraining> restored = saver.restoreLatest(model, trainer);
      restored.ifPresent(listener::optFrom);
      config.addTrainingListeners(listener.build());

      int epochsMade = restored.map(RestoredTraining::epoch).orElse(0L).intValue();
      EasyTrain.fit(trainer, epochs - epochsMade, train, null);
    }
  }

  /// Stands for your own samples.
  static Dataset samples(NDManager manager) {
    return new ArrayDataset.Builder()
        .setData(manager.randomNormal(new Shape(256, 64)))
        .optLabels(manager.randomNormal(new Shape(256, 10)))
        .setSampling(32, true)
        .build();
  }
}
