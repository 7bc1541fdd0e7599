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
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.RestoredTraining;
import dev.gantry.djl.ResumableDataset;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.tfrecord.FeatureSpec;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// What an application does that trains from files and goes on in the middle of an epoch: the
/// README shows it.
final class DatasetExample {
  private DatasetExample() {}

  /// Images and labels in raw shards, as batches in random order.
  static ShardDataset shards(Path folder) {
    return ShardDataset.builder()
        .setPath(folder)
        .setSampling(32)
        .optShuffle(42)
        .optNormalize("image", 1 / 255f, 0)
        .build();
  }

  /// The same in TFRecord files, which are indexed when they are opened for the first time.
  static TfRecordDataset records(List<Path> files) {
    return TfRecordDataset.builder()
        .setFiles(files)
        .addFeature(FeatureSpec.bytes("image", 1, 16, 16))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(IndexUse.BUILD)
        .setSampling(32)
        .optShuffle(42)
        .optNormalize("image", 1 / 255f, 0)
        .build();
  }

  /// Trains `model`, whose input is `[n, 1, 16, 16]`, until it has seen `train` so many times, also
  /// where an earlier process began with that.
  static void train(
      Model model,
      DefaultTrainingConfig config,
      Path folder,
      ResumableDataset train,
      Dataset test,
      int epochs)
      throws IOException, TranslateException {
    try (CheckpointSaver saver =
            CheckpointSaver.builder().setDirectory(folder).optKeepLast(3).optAsync(true).build();
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
