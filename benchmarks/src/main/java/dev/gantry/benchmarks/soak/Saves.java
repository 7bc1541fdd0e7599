// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.soak;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.DefaultTrainingConfig;
import ai.djl.training.GradientCollector;
import ai.djl.training.Trainer;
import ai.djl.training.loss.Loss;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.RestoredTraining;
import dev.gantry.djl.SaveMode;
import dev.gantry.djl.SaveRequest;
import dev.gantry.djl.internal.training.OptimizerState;
import dev.gantry.djl.internal.training.SavedOptimizer;
import dev.gantry.formats.checkpoint.BusyPolicy;
import java.nio.file.Path;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.zip.CRC32C;

/// Trains, saves in each mode, keeps the last few checkpoints, and restores the latest into
/// another training. The restored state must equal that of a saved step bit for bit, and must be
/// that of the last step if its save was reported as complete.
final class Saves extends Activity {
  private static final Fault[] FAULTS = {
    Fault.CANCEL, Fault.INTERRUPT, Fault.FILES, Fault.SESSION, Fault.CONSUMER
  };
  private static final int LAYERS = 3;
  private static final int UNITS = 384;
  private static final int ROWS = 8;

  /// A model with a trainer. Batches depend only on the number of the step.
  private static final class Training implements AutoCloseable {
    final Model model;
    final Trainer trainer;

    Training(Device device) {
      SequentialBlock block = new SequentialBlock();
      for (int i = 0; i < LAYERS; i++) {
        block.add(Linear.builder().setUnits(UNITS).build());
      }
      model = Model.newInstance("soak", device, "PyTorch");
      model.setBlock(block);
      trainer =
          model.newTrainer(
              new DefaultTrainingConfig(Loss.l2Loss())
                  .optDevices(new Device[] {device})
                  .optOptimizer(Optimizer.adam().build()));
      trainer.initialize(new Shape(ROWS, UNITS));
    }

    void step(long number) {
      try (NDManager manager = trainer.getManager().newSubManager()) {
        NDArray data = manager.full(new Shape(ROWS, UNITS), number % 10 / 10f - 0.4f);
        NDArray labels = manager.full(new Shape(ROWS, UNITS), number % 7 / 7f);
        try (GradientCollector collector = trainer.newGradientCollector()) {
          NDList predicted = trainer.forward(new NDList(data));
          predicted.attach(manager);
          NDArray loss = trainer.getLoss().evaluate(new NDList(labels), predicted);
          loss.attach(manager);
          collector.backward(loss);
        }
        trainer.step();
      }
    }

    /// A checksum of all parameters.
    int sum() {
      int sum = 0;
      for (var parameter : model.getBlock().getParameters()) {
        sum += Saves.sum(parameter.getKey(), parameter.getValue().getArray());
      }
      return sum;
    }

    @Override
    public void close() {
      trainer.close();
      model.close();
    }
  }

  /// Returns a checksum of a parameter. The sum of several parameters' checksums does not depend
  /// on their order.
  static int sum(String name, NDArray array) {
    CRC32C sum = new CRC32C();
    // DJL would leave a copy of an array on a GPU with the array's manager, which lives as long as
    // the training.
    try (NDArray copy = array.toDevice(Device.cpu(), true)) {
      sum.update(copy.toByteBuffer());
    }
    return Objects.hash(name, sum.getValue());
  }

  private final Path folder;

  /// The checksum of the parameters at each saved step, for threads that read checkpoints
  /// meanwhile.
  private final Map<Long, Integer> sums = new ConcurrentHashMap<>();

  private final Training training;
  private final Training other;
  private long step;

  Saves(Scene scene, int number) {
    super(scene, number);
    folder = scene.folder().resolve("checkpoints-" + number);
    training = new Training(device);
    other = new Training(device);
  }

  Path folder() {
    return folder;
  }

  Map<Long, Integer> sums() {
    return sums;
  }

  @Override
  void round() throws Exception {
    SaveMode[] modes = SaveMode.values();
    SaveMode mode = modes[random.nextInt(modes.length)];
    boolean good = attempt("saves, " + mode, anyOf(FAULTS), trial -> save(trial, mode));
    long last = step;
    attempt("restore", Fault.NONE, _ -> restore(good, last));
  }

  private CheckpointSaver.Builder saver(Trial trial) {
    return CheckpointSaver.builder().setPath(folder).optKeepLast(2).optSession(trial.session());
  }

  private void save(Trial trial, SaveMode mode) {
    BusyPolicy[] policies = BusyPolicy.values();
    CheckpointSaver.Builder builder =
        saver(trial)
            .optMode(mode)
            .optBusyPolicy(policies[random.nextInt(policies.length)])
            .optCancellation(trial.cancellation())
            .optProgress(trial.progress())
            .optState(
                "note",
                () -> {
                  trial.consume();
                  return "at " + step;
                },
                _ -> {});
    try (CheckpointSaver saver = builder.build()) {
      // As after a crash, the training resumes from the checkpoint on the disk.
      var _ = saver.restoreLatest(training.model, training.trainer);
      int saves = 1 + random.nextInt(3);
      for (int i = 0; i < saves; i++) {
        training.step(++step);
        sums.put(step, training.sum());
        var _ =
            saver.save(
                SaveRequest.builder()
                    .setStep(step)
                    .setModel(training.model)
                    .optTrainer(training.trainer)
                    .build());
        if (mode == SaveMode.OVERLAPPED) {
          // The update waits for the snapshot.
          training.step(++step);
        }
      }
    }
  }

  private void restore(boolean good, long last) {
    try (CheckpointSaver saver =
        CheckpointSaver.builder()
            .setPath(folder)
            .optKeepLast(2)
            .optSession(scene.session())
            .optState("note", () -> "", _ -> {})
            .build()) {
      Optional<RestoredTraining> restored = saver.restoreLatest(other.model, other.trainer);
      if (restored.isEmpty()) {
        if (good) {
          throw new WrongBytesException("there is no checkpoint after good saves up to " + last);
        }
        return;
      }
      long found = restored.get().step();
      Integer sum = sums.get(found);
      if (sum == null || sum != other.sum()) {
        throw new WrongBytesException("the checkpoint of step " + found + " is not of its step");
      }
      scene.tally().verified(bytes());
      if (found == step) {
        requireOptimizer(found);
      }
    }
  }

  /// Compares the states of the optimizers. Comparing a further step of both trainings would not
  /// work, because DJL's steps are sometimes wrong while other threads make and close arrays.
  private void requireOptimizer(long found) {
    SavedOptimizer<NDArray> saved = OptimizerState.of(training.trainer).values();
    SavedOptimizer<NDArray> restored = OptimizerState.of(other.trainer).values();
    if (saved.updates() != restored.updates()
        || !saved.updateCounts().equals(restored.updateCounts())
        || sum(saved) != sum(restored)) {
      throw new WrongBytesException(
          "the optimizer of the checkpoint of step " + found + " is not of its step");
    }
  }

  private static int sum(SavedOptimizer<NDArray> state) {
    int sum = 0;
    for (Map.Entry<String, NDArray> array : state.arrays().entrySet()) {
      sum += sum(array.getKey(), array.getValue());
    }
    return sum;
  }

  long bytes() {
    return 4L * LAYERS * (UNITS * UNITS + UNITS);
  }

  @Override
  public void close() {
    training.close();
    other.close();
  }
}
