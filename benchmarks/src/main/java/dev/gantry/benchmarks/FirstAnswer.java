// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.util.cuda.CudaUtils;
import dev.gantry.djl.Weights;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/// The first answer of a process with DJL: the sum of the first array of weights, in milliseconds from
/// the start of the process: `FirstAnswer LOCATION DEVICE WAY`, where DEVICE is `cuda:0` or `host`. `GANTRY_STARTED` is when the process was
/// started, in nanoseconds of the epoch. WAY is
///
/// - `plain`: DJL's engine, then the weights;
/// - `weights-first`: the weights, then the engine, while the device is prepared in the background;
/// - `at-once`: the weights, and DJL's search for GPUs, on other threads while the engine starts.
public final class FirstAnswer {
  private static final String PYTORCH = "PyTorch";

  private final Instant started =
      Instant.EPOCH.plusNanos(Long.parseLong(System.getenv("GANTRY_STARTED")));
  private final List<String> stages = new ArrayList<>();

  private FirstAnswer() {}

  public static void main(String[] arguments) {
    // Not Device.fromName, which starts the engine.
    Device device = arguments[1].equals("host") ? Device.cpu() : Device.gpu();
    new FirstAnswer().run(arguments[0], device, arguments[2]);
  }

  private void run(String location, Device device, String way) {
    tell("main");
    switch (way) {
      case "plain" -> {
        gpus();
        engine();
        answer(open(location), device);
      }
      case "weights-first" -> {
        Weights weights = open(location);
        gpus();
        engine();
        answer(weights, device);
      }
      case "at-once" -> {
        CompletableFuture<Weights> weights = CompletableFuture.supplyAsync(() -> open(location));
        CompletableFuture<Void> gpus = CompletableFuture.runAsync(this::gpus);
        engine();
        gpus.join();
        answer(weights.join(), device);
      }
      default -> throw new IllegalArgumentException(way);
    }
    System.out.println(String.join("  ", stages));
  }

  private Weights open(String location) {
    Weights weights = Weights.open(location);
    tell("weights open");
    return weights;
  }

  /// DJL asks by JNA, for its default device; here to tell it from the engine's own start.
  private void gpus() {
    int gpus = CudaUtils.getGpuCount();
    tell(gpus + " GPUs");
  }

  private void engine() {
    Engine.getEngine(PYTORCH);
    tell("engine");
  }

  private void answer(Weights weights, Device device) {
    try (weights;
        NDManager manager = NDManager.newBaseManager(device, PYTORCH)) {
      tell("manager");
      NDList arrays = weights.load(manager);
      tell("loaded");
      try (NDArray first = arrays.getFirst();
          NDArray sum = first.sum()) {
        sum.toByteBuffer();
      }
      tell("answered");
    }
    tell("closed");
  }

  private synchronized void tell(String what) {
    double millis = Duration.between(started, Instant.now()).toNanos() / 1e6;
    stages.add(String.format(Locale.ROOT, "%s %.0f", what, millis));
  }
}
