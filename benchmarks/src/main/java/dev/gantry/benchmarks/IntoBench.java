// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.SequencedMap;

/// Loads into DJL's own tensors against loads into our slabs, and writes from both, in turns:
/// `IntoBench FOLDER [BYTES]`, on DJL's default device. Prints medians and their ratio; the bytes are
/// hot.
public final class IntoBench {
  private static final int LOADS = 9;
  private static final int WRITES = 3;
  private static final long DEFAULT_BYTES = 4_300_000_000L;

  private interface Turn {
    void run() throws IOException;
  }

  private IntoBench() {}

  public static void main(String[] arguments) throws IOException {
    Path folder = Files.createDirectories(Path.of(arguments[0]));
    long bytes = arguments.length > 1 ? Long.parseLong(arguments[1]) : DEFAULT_BYTES;
    run(folder, bytes, 256);
    run(folder, bytes / 4, 20_000);
  }

  private static void run(Path folder, long bytes, int tensors) throws IOException {
    Path file = folder.resolve("into-" + tensors + ".safetensors");
    if (!Files.exists(file)) {
      var _ = RandomCheckpoint.make(file, bytes, tensors, "F32");
    }
    PageCache.warm(file);
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file);
        NDList loaded = weights.load(manager)) {
      SequencedMap<String, NDArray> own = new LinkedHashMap<>();
      weights
          .tensors()
          .forEach((name, tensor) ->
              own.put(name, manager.create(new Shape(tensor.shape().toArray()), DataType.FLOAT32)));
      Device device = manager.getDevice();
      System.out.printf(
          Locale.ROOT,
          "%s: %.2f GB in %d tensors on %s%n",
          file.getFileName(),
          weights.totalBytes() / 1e9,
          tensors,
          device);
      compare(
          "load",
          weights.totalBytes(),
          LOADS,
          () -> {
            try (NDManager temporary = manager.newSubManager()) {
              var _ = weights.load(temporary);
            }
          },
          () -> weights.copyTo(own));
      check(loaded, own);
      Path copy = folder.resolve("copy.safetensors");
      WeightsWriter writer = WeightsWriter.builder().setFile(copy).build();
      compare(
          "write",
          weights.totalBytes(),
          WRITES,
          () -> writer.write(loaded),
          () -> writer.write(own));
      Files.delete(copy);
    }
  }

  /// That what was measured is right.
  private static void check(NDList loaded, SequencedMap<String, NDArray> own) {
    for (NDArray array : List.of(loaded.getFirst(), loaded.getLast())) {
      NDArray filled = Objects.requireNonNull(own.get(array.getName()));
      // As bytes: random ones may be no numbers, which are not equal to themselves.
      if (!array.toByteBuffer().equals(filled.toByteBuffer())) {
        throw new IllegalStateException("other values in " + array.getName());
      }
    }
  }

  /// @param slabs of our memory
  /// @param own of DJL's
  private static void compare(String what, long bytes, int rounds, Turn slabs, Turn own)
      throws IOException {
    List<Double> ours = new ArrayList<>();
    List<Double> djls = new ArrayList<>();
    slabs.run();
    own.run();
    for (int i = 0; i < rounds; i++) {
      ours.add(gigabytesPerSecond(bytes, slabs));
      djls.add(gigabytesPerSecond(bytes, own));
    }
    System.out.printf(
        Locale.ROOT,
        "%-6s our slabs %6.2f GB/s %s, DJL's own tensors %6.2f GB/s %s, ratio %.3f%n",
        what,
        median(ours),
        spread(ours),
        median(djls),
        spread(djls),
        median(djls) / median(ours));
  }

  private static double gigabytesPerSecond(long bytes, Turn turn) throws IOException {
    long start = System.nanoTime();
    turn.run();
    return (double) bytes / (System.nanoTime() - start);
  }

  private static double median(List<Double> values) {
    double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    return sorted[sorted.length / 2];
  }

  private static String spread(List<Double> values) {
    double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    return Arrays.stream(new double[] {sorted[0], sorted[sorted.length - 1]})
        .mapToObj(value -> String.format(Locale.ROOT, "%.2f", value))
        .toList()
        .toString();
  }
}
