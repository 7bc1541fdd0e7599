// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.dataset.Dataset;
import ai.djl.training.loss.Loss;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointListener;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.RestoredTraining;
import dev.gantry.djl.ResumableDataset;
import dev.gantry.djl.ShardDataset;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// Saves every 20 steps and resumes in the middle of an epoch: the batches that were left come
/// next, in the same random order.
///
/// `SHARDS` is what WriteShards wrote, `FOLDER` gets the checkpoints:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ResumeMidEpoch.java SHARDS FOLDER EPOCHS
/// ```
public final class ResumeMidEpoch {
  private ResumeMidEpoch() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("ResumeMidEpoch.java SHARDS FOLDER EPOCHS", arguments);
    Path folder = Path.of(arguments[1]);
    int epochs = Integer.parseInt(arguments[2]);
    try (ShardDataset train = TrainFromShards.images(Path.of(arguments[0]));
        Model model = Model.newInstance("images")) {
      model.setBlock(TrainFromShards.block());
      DefaultTrainingConfig config = new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss());
      train(model, config, folder, train, null, epochs);
    }
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      saver.list().forEach(checkpoint -> System.out.println("step " + checkpoint.step()));
    }
  }

  /// Trains `model`, whose input is `[n, 1, 16, 16]`, until it has seen `train` so many times,
  /// counting what an earlier process did.
  public static void train(
      Model model,
      DefaultTrainingConfig config,
      Path folder,
      ResumableDataset train,
      @Nullable Dataset test,
      int epochs)
      throws IOException, TranslateException {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).optKeepLast(3).build();
        Trainer trainer = model.newTrainer(config)) {
      trainer.initialize(new Shape(1, 1, 16, 16));
      CheckpointListener.Builder listener =
          CheckpointListener.builder().setSaver(saver).optEverySteps(20).optDataset(train);

      Optional<RestoredTraining> restored = saver.restoreLatest(model, trainer);
      restored.ifPresent(listener::optFrom);
      // The batches that the epoch still had, then the epochs that follow.
      restored.flatMap(RestoredTraining::datasetState).ifPresent(train::restore);
      config.addTrainingListeners(listener.build());

      int epochsMade = restored.map(RestoredTraining::epoch).orElse(0L).intValue();
      EasyTrain.fit(trainer, epochs - epochsMade, train, test);
    }
  }
}
