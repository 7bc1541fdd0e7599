// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import dev.gantry.benchmarks.harness.ChildJvm;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.Folders;
import dev.gantry.benchmarks.result.Spread;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import dev.gantry.formats.internal.weights.LoadedTensors;
import dev.gantry.formats.internal.weights.WeightsFormats;
import dev.gantry.formats.spi.StoredTensor;
import java.io.BufferedInputStream;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/// Measures the first load of a process. A script starts the process, which prints when it reached
/// each stage, in milliseconds from its start. `GANTRY_STARTED` gives the start in nanoseconds
/// since 1970.
public final class FirstLoads {
  private static final int LAYERS = 100;
  private static final int LOADS = 3;

  private final StringBuilder line = new StringBuilder();
  private final Instant started =
      Instant.EPOCH.plusNanos(Long.parseLong(System.getenv("GANTRY_STARTED")));

  private FirstLoads() {}

  private synchronized void tell(String what) {
    double millis = Duration.between(started, Instant.now()).toNanos() / 1e6;
    line.append(String.format(Locale.ROOT, "%s %.0f ms  ", what, millis));
  }

  /// Measures the first loads onto a device. With `prepare`, the session prepares the device
  /// first.
  static void device(String[] arguments) {
    FirstLoads moments = new FirstLoads();
    moments.tell("main");
    Device device = Device.parse(arguments[1]);
    try (GantrySession session = GantrySession.open()) {
      if (arguments.length > 2) {
        session.prepare(device);
      }
      moments.tell("session");
      List<StoredTensor> tensors =
          List.copyOf(
              WeightsFormats.open(session, Location.of(Path.of(arguments[0]))).tensors().values());
      moments.tell("header");
      for (int i = 1; i <= LOADS; i++) {
        LoadedTensors.load(session, tensors, device, TransferOptions.defaults()).close();
        moments.tell("load " + i);
      }
    }
    System.out.println(moments.line);
  }

  /// Measures the time to the first answer of DJL. With `together`, another thread opens the
  /// weights and prepares the device while DJL's engine starts. The answer is the product of the
  /// first tensor, as a row, and a vector of ones.
  static void answer(String[] arguments) {
    FirstLoads moments = new FirstLoads();
    String location = arguments[0];
    Device device = Device.parse(arguments[1]);
    boolean together = arguments[2].equals("together");
    moments.tell("main");
    CompletableFuture<Weights> opened =
        together
            ? CompletableFuture.supplyAsync(() -> {
              Session.shared().prepare(device);
              moments.tell("prepared");
              Weights weights = Weights.open(location);
              moments.tell("open");
              return weights;
            })
            : new CompletableFuture<>();
    // As a program does that makes its model before it opens the weights.
    ai.djl.Device _ = Engine.getInstance().defaultDevice();
    moments.tell("engine " + Engine.getInstance().getVersion());
    if (!together) {
      opened.complete(Weights.open(location));
    }
    ai.djl.Device target =
        switch (device) {
          case Device.Cuda(int ordinal) -> ai.djl.Device.gpu(ordinal);
          case Device.Host _ -> ai.djl.Device.cpu();
        };
    try (Weights weights = opened.join();
        NDManager manager = NDManager.newBaseManager(target)) {
      moments.tell("both");
      NDList arrays = weights.load(manager);
      moments.tell(arrays.size() + " arrays");
      // DJL creates no BFLOAT16 arrays, so the row becomes FLOAT32.
      NDArray row = arrays.getFirst().reshape(1, -1).toType(DataType.FLOAT32, false);
      NDArray input = manager.ones(new Shape(row.getShape().get(1), 1));
      moments.tell("answer of " + row.matMul(input).toFloatArray().length);
    }
    System.out.println(moments.line);
  }

  /// Measures first loads by Gantry and by DJL, each in a fresh JVM, which has loaded libtorch
  /// before or has not.
  static void inTurns(String[] arguments) throws Exception {
    for (String megabytes : Arrays.asList(arguments).subList(1, arguments.length)) {
      Path folder = Files.createTempDirectory("first-load");
      make(folder, Integer.parseInt(megabytes));
      List<ChildJvm> ways = new ArrayList<>();
      for (String torch : List.of("loaded", "not yet")) {
        for (String way : List.of("gantry", "decode", "model")) {
          String name = way + ", libtorch " + torch;
          ways.add(new ChildJvm(name, FirstLoads.class, way, folder.toString(), torch));
        }
      }
      long bytes = Files.size(folder.resolve("model.safetensors"));
      new Comparison("first load of " + megabytes + " MB", bytes)
          .addAll(List.copyOf(ways))
          .print(Integer.parseInt(arguments[0]));
      ways.forEach(way ->
          System.out.printf(
              Locale.ROOT,
              "%s MB, %s\t%.0f ms of the CPU\t%.0f ms from the process's start%n",
              megabytes,
              way.name(),
              medianMillis(way, 1),
              medianMillis(way, 2)));
      Folders.remove(folder);
    }
  }

  /// Returns the median of a figure over all turns but the first one, which is a warm-up.
  private static double medianMillis(ChildJvm way, int figure) {
    return Spread.of(way.figures().stream().skip(1).map(seconds -> 1e3 * seconds[figure]).toList())
        .median();
  }

  private static Block block(int megabytes) {
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < LAYERS; i++) {
      block.add(Linear.builder().setUnits(width(megabytes)).build());
    }
    return block;
  }

  private static long width(int megabytes) {
    return (long) Math.sqrt(megabytes * 1e6 / LAYERS / Float.BYTES);
  }

  private static void make(Path folder, int megabytes) throws Exception {
    Files.writeString(folder.resolve("size"), Integer.toString(megabytes));
    try (NDManager manager = NDManager.newBaseManager();
        Model model = Model.newInstance("model", "PyTorch")) {
      Block block = block(megabytes);
      block.initialize(manager, DataType.FLOAT32, new Shape(1, width(megabytes)));
      model.setBlock(block);
      model.save(folder, "model");
      NDList arrays = new NDList();
      block
          .getParameters()
          .forEach(parameter -> {
            NDArray array = parameter.getValue().getArray();
            array.setName(parameter.getKey());
            arrays.add(array);
          });
      WeightsWriter.builder().setFile(folder.resolve("model.safetensors")).build().write(arrays);
    }
  }

  /// Prints the wall-clock seconds and the CPU seconds of a load.
  static void main(String[] arguments) throws Exception {
    ChildJvm.endWithParent();
    Path folder = Path.of(arguments[1]);
    if (arguments[2].equals("loaded")) {
      try (NDManager manager = NDManager.newBaseManager()) {
        var _ = manager.create(1f);
      }
    }
    // The block is made before the clock starts, because every program needs a block.
    Block block = block(Integer.parseInt(Files.readString(folder.resolve("size"))));
    long cpu = cpuNanos();
    long begin = System.nanoTime();
    Path file = folder.resolve("model.safetensors");
    int tensors =
        switch (arguments[0]) {
          case "gantry" -> Weights.open(file).load(NDManager.newBaseManager()).size();
          case "decode" -> {
            try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
              yield NDList.decode(NDManager.newBaseManager(), in).size();
            }
          }
          case "model" -> {
            Model model = Model.newInstance("model", "PyTorch");
            model.setBlock(block);
            model.load(folder, "model");
            yield block.getParameters().size();
          }
          default -> throw new IllegalArgumentException(arguments[0]);
        };
    long end = System.nanoTime();
    double used = (cpuNanos() - cpu) / 1e9;
    if (tensors != 2 * LAYERS) {
      throw new IllegalStateException(tensors + " tensors");
    }
    System.out.println((end - begin) / 1e9 + " " + used);
    System.exit(0);
  }

  private static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }
}
