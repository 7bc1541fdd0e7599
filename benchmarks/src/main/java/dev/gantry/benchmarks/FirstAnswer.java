// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.Session;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import java.time.Duration;
import java.time.Instant;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/// How long a process takes from its start to its first answer with DJL, in milliseconds:
/// `FirstAnswer LOCATION DEVICE plain|together`. With `together` another thread opens the weights and
/// makes the device ready while DJL's engine starts. The answer is a product with the first tensor as a row.
/// `GANTRY_STARTED` is when the process was started, in nanoseconds of the epoch.
public final class FirstAnswer {
  private final Instant started =
      Instant.EPOCH.plusNanos(Long.parseLong(System.getenv("GANTRY_STARTED")));
  private final StringBuilder line = new StringBuilder();

  private FirstAnswer() {}

  public static void main(String[] arguments) {
    new FirstAnswer().answer(arguments[0], arguments[1], arguments[2].equals("together"));
  }

  private void answer(String location, String device, boolean together) {
    tell("main");
    CompletableFuture<Weights> opened =
        together
            ? CompletableFuture.supplyAsync(() -> prepareAndOpen(location, device))
            : new CompletableFuture<>();
    tell("engine " + Engine.getInstance().getVersion());
    if (!together) {
      opened.complete(Weights.open(location));
    }
    try (Weights weights = opened.join();
        NDManager manager = NDManager.newBaseManager(djl(dev.gantry.core.Device.parse(device)))) {
      tell("both");
      NDList arrays = weights.load(manager, LoadOptions.builder().build());
      tell(arrays.size() + " arrays");
      // DJL makes no BFLOAT16 arrays.
      NDArray row = arrays.getFirst().reshape(1, -1).toType(DataType.FLOAT32, false);
      NDArray input = manager.ones(new Shape(row.getShape().get(1), 1));
      float[] answer = row.matMul(input).toFloatArray();
      tell("answer of " + answer.length);
    }
    System.out.println(line);
  }

  private static Device djl(dev.gantry.core.Device device) {
    return switch (device) {
      case dev.gantry.core.Device.Cuda(int ordinal) -> Device.gpu(ordinal);
      case dev.gantry.core.Device.Host _ -> Device.cpu();
    };
  }

  private Weights prepareAndOpen(String location, String device) {
    Session.shared().prepare(dev.gantry.core.Device.parse(device));
    tell("prepared");
    Weights weights = Weights.open(location);
    tell("open");
    return weights;
  }

  private synchronized void tell(String what) {
    double millis = Duration.between(started, Instant.now()).toNanos() / 1e6;
    line.append(String.format(Locale.ROOT, "%s %.0f ms  ", what, millis));
  }
}
