package dev.gantry.cli.internal.demo;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Dataset;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointListener;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.RestoredTraining;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/// What an application does whose training must survive a crash: the README shows it.
final class SaveExample {
  private SaveExample() {}

  /// Trains `model`, whose input is `[n, 64]`, until it has seen `train` so many times, also where
  /// an earlier process began with that.
  static void train(
      Model model, DefaultTrainingConfig config, Path folder, Dataset train, int epochs)
      throws IOException, TranslateException {
    try (CheckpointSaver saver =
            CheckpointSaver.builder().setDirectory(folder).optKeepLast(3).optAsync(true).build();
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
}
