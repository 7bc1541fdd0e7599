// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.gpus;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.EasyTrain;
import ai.djl.training.Trainer;
import ai.djl.training.evaluator.Accuracy;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Adam;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.CheckpointListener;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.DataParallelListener;
import dev.gantry.djl.RestoredTraining;
import dev.gantry.djl.ShardDataset;
import dev.gantry.samples.TrainFromShards;
import dev.gantry.samples.Usage;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/// Trains on all GPUs of this machine; each computes a part of every batch. The program saves
/// after each epoch. When it is started again, it continues from the last checkpoint, also on
/// another number of GPUs. Without a GPU, the CPU is the only device.
///
/// `FOLDER` is what WriteShards wrote, and `CHECKPOINTS` a new folder:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' TrainOnSeveralGpus.java FOLDER CHECKPOINTS
/// ```
public final class TrainOnSeveralGpus {
  private static final int EPOCHS = 2;

  /// The size of the whole batch, whatever the number of GPUs: a multiple of 1, 2, 3, 4, 6 and 8.
  private static final int BATCH = 96;

  private TrainOnSeveralGpus() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("TrainOnSeveralGpus.java FOLDER CHECKPOINTS", arguments);
    Device[] devices = Engine.getInstance().getDevices();
    try (ShardDataset train =
            ShardDataset.builder()
                .setPath(Path.of(arguments[0]))
                .setSampling(BATCH)
                .optShuffle(42)
                .optNormalize("image", 1 / 255f, 0)
                .optDevices(devices)
                .build();
        CheckpointSaver saver = CheckpointSaver.builder().setPath(Path.of(arguments[1])).build();
        Model model = Model.newInstance("images")) {
      model.setBlock(TrainFromShards.block());
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.softmaxCrossEntropyLoss())
              .optDevices(devices)
              .optOptimizer(Adam.builder().build())
              .addEvaluator(new Accuracy())
              .addTrainingListeners(new DataParallelListener());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(1, 1, 16, 16));
        CheckpointListener.Builder listener =
            CheckpointListener.builder().setSaver(saver).optEveryEpochs(1).optDataset(train);
        Optional<RestoredTraining> restored = saver.restoreLatest(model, trainer);
        restored.ifPresent(listener::optFrom);
        restored.flatMap(RestoredTraining::datasetState).ifPresent(train::restore);
        config.addTrainingListeners(listener.build());
        EasyTrain.fit(trainer, EPOCHS, train, null);
        System.out.println(
            (restored.isPresent() ? "went on" : "began") + " on " + devices.length + " devices");
      }
    }
  }
}
