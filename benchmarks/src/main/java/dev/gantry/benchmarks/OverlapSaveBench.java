// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

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
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveMode;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/// Measures how much time saves add to the steps of a training: `OverlapSaveBench FOLDER [LAYERS
/// UNITS ROWS]`. DJL trains linear layers with Adam, on the GPU if there is one. A checkpoint
/// holds three arrays a layer: the parameter and Adam's two moments.
///
/// A window is a save, if any, and the steps after the save, until the last loss is known. Windows
/// without saves, windows with a snapshot that stalls the training and windows with a snapshot
/// that overlaps it run in turns. Each save is durable before the next window begins; the clock is
/// stopped while the bench waits for this. At the end the bench compares the last overlapped
/// checkpoint with the parameters of its step.
public final class OverlapSaveBench {
  private static final int STEPS = 4;
  private static final int TURNS = 18;

  private final Trainer trainer;
  private final NDArray data;
  private final NDArray labels;
  private long step;

  private OverlapSaveBench(Trainer trainer, NDArray data, NDArray labels) {
    this.trainer = trainer;
    this.data = data;
    this.labels = labels;
  }

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    int layers = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 8;
    int units = arguments.length > 1 ? Integer.parseInt(arguments[2]) : 8192;
    int rows = arguments.length > 1 ? Integer.parseInt(arguments[3]) : 2048;
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < layers; i++) {
      block.add(Linear.builder().setUnits(units).optBias(false).build());
    }
    try (Model model = Model.newInstance("overlap")) {
      model.setBlock(block);
      DefaultTrainingConfig config =
          new DefaultTrainingConfig(Loss.l2Loss()).optOptimizer(Optimizer.adam().build());
      try (Trainer trainer = model.newTrainer(config)) {
        trainer.initialize(new Shape(rows, units));
        NDManager manager = trainer.getManager();
        OverlapSaveBench bench =
            new OverlapSaveBench(
                trainer,
                manager.randomNormal(new Shape(rows, units)),
                manager.zeros(new Shape(rows, units)));
        long bytes = 3L * layers * units * units * Float.BYTES;
        System.out.printf(
            Locale.ROOT,
            "%d layers of %d x %d, %d rows, on %s%n",
            layers,
            units,
            units,
            rows,
            manager.getDevice());
        bench.first(folder);
        bench.turns(folder, bytes);
      }
    }
  }

  private static CheckpointSaver saver(Path folder, SaveMode mode) {
    return CheckpointSaver.builder().setPath(folder).optKeepLast(1).optMode(mode).build();
  }

  private void step() {
    try (NDManager manager = trainer.getManager().newSubManager()) {
      NDArray batch = data.duplicate();
      batch.attach(manager);
      try (GradientCollector collector = trainer.newGradientCollector()) {
        NDList predicted = trainer.forward(new NDList(batch));
        predicted.attach(manager);
        NDArray loss = trainer.getLoss().evaluate(new NDList(labels), predicted);
        loss.attach(manager);
        collector.backward(loss);
        // Reads the loss, which waits for the device, as in a training that reports its loss.
        float _ = loss.getFloat();
      }
      trainer.step();
    }
    step++;
  }

  /// Measures how long the first saves of a saver block their caller, with and without
  /// preparation.
  private void first(Path folder) throws Exception {
    for (boolean prepared : new boolean[] {false, true}) {
      try (CheckpointSaver saver = saver(folder.resolve("first-" + prepared), SaveMode.ASYNC)) {
        if (prepared) {
          saver.prepare(trainer.getModel(), trainer).join();
        }
        for (int i = 1; i <= 3; i++) {
          step();
          synchronise();
          System.out.printf(
              Locale.ROOT,
              "save %d of a saver%s: %.1f ms%n",
              i,
              prepared ? ", prepared" : "",
              1e3 * Contender.seconds(() -> save(saver)));
          saver.await();
        }
      }
    }
  }

  private void save(CheckpointSaver saver) {
    var _ = saver.save(step, trainer.getModel(), trainer);
  }

  private void turns(Path folder, long bytes) throws Exception {
    try (CheckpointSaver stalled = saver(folder.resolve("stalled"), SaveMode.ASYNC);
        CheckpointSaver overlapped = saver(folder.resolve("overlapped"), SaveMode.OVERLAPPED)) {
      stalled.prepare(trainer.getModel(), trainer).join();
      overlapped.prepare(trainer.getModel(), trainer).join();
      new Comparison(STEPS + " steps", bytes)
          .add("without saves", this::window)
          .addTimed("a save that stalls", () -> window(stalled))
          .addTimed("a save that overlaps", () -> window(overlapped))
          .print(TURNS);
      check(overlapped);
    }
  }

  private double window(CheckpointSaver saver) throws Exception {
    double seconds =
        Contender.seconds(() -> {
          save(saver);
          window();
        });
    saver.await();
    return seconds;
  }

  private void window() {
    for (int i = 0; i < STEPS; i++) {
      step();
    }
    synchronise();
  }

  /// Waits for the default stream of the device, by reading a value.
  private void synchronise() {
    float _ = trainer.getModel().getBlock().getParameters().valueAt(0).getArray().getFloat(0, 0);
  }

  private void check(CheckpointSaver saver) {
    step();
    float[] expected = firstRow();
    save(saver);
    window();
    if (Arrays.equals(firstRow(), expected)) {
      throw new IllegalStateException("the steps changed nothing");
    }
    saver.await();
    saver.restore(saver.latest().orElseThrow().step(), trainer.getModel(), trainer);
    if (!Arrays.equals(firstRow(), expected)) {
      throw new WrongBytesException("the overlapped checkpoint is not of its step");
    }
  }

  /// Reads the first row of the last layer, because a snapshot copies that layer last.
  private float[] firstRow() {
    var parameters = trainer.getModel().getBlock().getParameters();
    try (NDArray row = parameters.valueAt(parameters.size() - 1).getArray().get(0)) {
      return row.toFloatArray();
    }
  }
}
