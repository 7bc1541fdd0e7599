// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.engine.Engine;
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
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveMode;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// What saves add to a training's steps: `OverlapSaveBench FOLDER [LAYERS UNITS ROWS]`. DJL trains
/// linear layers with Adam, on the GPU if it has one; a checkpoint holds three arrays a layer.
///
/// A window is a save and the steps after it, until the last loss is there. Without saves, with
/// snapshots that stall and with snapshots that overlap take turns; each save is durable before the
/// next window, off the clock. At the end the last overlapped checkpoint is compared with the
/// parameters of its step.
public final class OverlapSaveBench {
  private static final int STEPS = 4;
  private static final int WINDOWS = 6;
  private static final int TURNS = 3;

  private final Trainer trainer;
  private final NDArray data;
  private final NDArray labels;
  private long step;

  private OverlapSaveBench(Trainer trainer, NDArray data, NDArray labels) {
    this.trainer = trainer;
    this.data = data;
    this.labels = labels;
  }

  public static void main(String[] arguments) {
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
            "%d layers of %d x %d, %d rows, %s; a checkpoint has %.2f GB%n",
            layers,
            units,
            units,
            rows,
            Engine.getInstance().getGpuCount() > 0 ? "on the GPU" : "on the CPU",
            bytes / 1e9);
        bench.first(folder, model);
        bench.turns(folder, model);
      }
    }
  }

  private static CheckpointSaver saver(Path folder, boolean overlap) {
    return CheckpointSaver.builder()
        .setPath(folder)
        .optKeepLast(1)
        .optMode(overlap ? SaveMode.OVERLAPPED : SaveMode.ASYNC)
        .build();
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
        // As a training that reports it: waits for the device.
        float _ = loss.getFloat();
      }
      trainer.step();
    }
    step++;
  }

  /// How long the first save of a process stops its caller, and the second, with and without
  /// preparation.
  private void first(Path folder, Model model) {
    for (int i = 0; i < STEPS; i++) {
      step();
    }
    for (boolean prepared : new boolean[] {false, true}) {
      try (CheckpointSaver saver = saver(folder, false)) {
        if (prepared) {
          saver.prepare(model, trainer).join();
        }
        double[] millis = new double[3];
        for (int i = 0; i < millis.length; i++) {
          step();
          synchronise();
          long start = System.nanoTime();
          var _ = saver.save(step, model, trainer);
          millis[i] = millis(start);
          saver.await();
        }
        System.out.printf(
            "stalls of the first saves%s: %s ms%n",
            prepared ? ", prepared" : "", Arrays.toString(rounded(millis)));
      }
    }
  }

  private void turns(Path folder, Model model) {
    for (int turn = 0; turn < TURNS; turn++) {
      double without = windows("without saves", () -> {}, () -> {});
      for (boolean overlap : new boolean[] {false, true}) {
        try (CheckpointSaver saver = saver(folder, overlap)) {
          saver.prepare(model, trainer).join();
          double with =
              windows(
                  overlap ? "overlapped snapshots" : "stalled snapshots",
                  () -> {
                    var _ = saver.save(step, model, trainer);
                  },
                  saver::await);
          System.out.printf(
              Locale.ROOT, "  a save adds %.1f ms to the training%n", (with - without) * STEPS);
          if (overlap && turn == TURNS - 1) {
            check(saver, model);
          }
        }
      }
    }
  }

  /// @return the median time of a step in ms
  private double windows(String label, Runnable save, Runnable await) {
    List<Double> steps = new ArrayList<>();
    double[] saves = new double[WINDOWS];
    double[] next = new double[WINDOWS];
    step();
    for (int window = 0; window < WINDOWS; window++) {
      synchronise();
      long start = System.nanoTime();
      save.run();
      saves[window] = millis(start);
      long first = System.nanoTime();
      step();
      next[window] = millis(first);
      for (int i = 1; i < STEPS; i++) {
        step();
      }
      synchronise();
      steps.add(millis(start) / STEPS);
      await.run();
    }
    double[] all = steps.stream().mapToDouble(Double::doubleValue).toArray();
    System.out.printf(
        Locale.ROOT,
        "%s: median step %.1f ms %s; the call %.1f, the step after it %.1f%n",
        label,
        median(all),
        Arrays.toString(rounded(all)),
        median(saves),
        median(next));
    return median(all);
  }

  /// All that the default stream was given is done when a value is read.
  private void synchronise() {
    float _ = trainer.getModel().getBlock().getParameters().valueAt(0).getArray().getFloat(0, 0);
  }

  private void check(CheckpointSaver saver, Model model) {
    step();
    float[] expected = firstRow();
    var _ = saver.save(step, model, trainer);
    for (int i = 0; i < STEPS; i++) {
      step();
    }
    if (Arrays.equals(firstRow(), expected)) {
      throw new IllegalStateException("the steps changed nothing");
    }
    saver.await();
    StoredCheckpoint latest = saver.latest().orElseThrow();
    saver.restore(latest.step(), model, trainer);
    System.out.println(
        Arrays.equals(firstRow(), expected)
            ? "the overlapped checkpoint is of its step"
            : "WRONG VALUES in the overlapped checkpoint");
  }

  /// Reads the last layer's first row: that layer is copied last.
  private float[] firstRow() {
    var parameters = trainer.getModel().getBlock().getParameters();
    try (NDArray row = parameters.valueAt(parameters.size() - 1).getArray().get(0)) {
      return row.toFloatArray();
    }
  }

  private static double millis(long start) {
    return (System.nanoTime() - start) / 1e6;
  }

  private static double[] rounded(double[] values) {
    return Arrays.stream(values).map(value -> Math.round(value * 10) / 10.0).toArray();
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }
}
