// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.benchmarks.harness.WrongBytesException;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;

/// Compares loads into DJL's own tensors with loads into Gantry's slabs, and writes of both kinds
/// of arrays, on DJL's default device.
final class IntoBench {
  private static final int LOADS = 9;
  private static final int WRITES = 3;
  private static final long DEFAULT_BYTES = 4_300_000_000L;

  private IntoBench() {}

  static void main(String[] arguments) throws Exception {
    Path folder = Files.createDirectories(Path.of(arguments[0]));
    long bytes = arguments.length > 1 ? Long.parseLong(arguments[1]) : DEFAULT_BYTES;
    run(folder, bytes, 256);
    run(folder, bytes / 4, 20_000);
  }

  private static void run(Path folder, long size, int tensors) throws Exception {
    Path file = folder.resolve("into-" + tensors + ".safetensors");
    if (!Files.exists(file)) {
      var _ = RandomCheckpoint.make(file, size, tensors, "F32");
    }
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file);
        NDList loaded = weights.load(manager)) {
      SequencedMap<String, NDArray> own = new LinkedHashMap<>();
      weights
          .tensors()
          .forEach((name, tensor) ->
              own.put(name, manager.create(new Shape(tensor.shape().toArray()), DataType.FLOAT32)));
      String of = " " + tensors + " tensors on " + manager.getDevice();
      long bytes = weights.totalBytes();
      new Comparison("loads of" + of, bytes)
          .warm(List.of(file))
          .add(
              "our slabs",
              () -> {
                try (NDManager temporary = manager.newSubManager()) {
                  var _ = weights.load(temporary);
                }
              })
          .add("DJL's own tensors", () -> weights.copyTo(own))
          .print(LOADS);
      check(loaded, own);
      Path copy = folder.resolve("copy.safetensors");
      WeightsWriter writer = WeightsWriter.builder().setFile(copy).build();
      new Comparison("writes of" + of, bytes)
          .add("our slabs", () -> writer.write(loaded))
          .add("DJL's own tensors", () -> writer.write(own))
          .print(WRITES);
      Files.delete(copy);
    }
  }

  private static void check(NDList loaded, SequencedMap<String, NDArray> own) {
    for (NDArray array : List.of(loaded.getFirst(), loaded.getLast())) {
      NDArray filled = Objects.requireNonNull(own.get(array.getName()));
      // Compares bytes, because random bytes may be NaN, which is not equal to itself.
      if (!array.toByteBuffer().equals(filled.toByteBuffer())) {
        throw new WrongBytesException("other values in " + array.getName());
      }
    }
  }
}
