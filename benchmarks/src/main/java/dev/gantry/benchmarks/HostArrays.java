// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.util.Pair;
import dev.gantry.benchmarks.bench.JvmPeers;
import dev.gantry.benchmarks.harness.Comparison;
import dev.gantry.benchmarks.harness.HostCeilings;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.djl.CheckpointSaver;
import dev.gantry.djl.SaveRequest;
import dev.gantry.djl.Weights;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.stream.Stream;

/// Compares loads and saves of DJL's arrays on the CPU with DJL's own loads and saves, and with
/// the ceilings of the JDK.
final class HostArrays {
  private static final int TURNS = 10;
  private static final int TENSORS = 64;
  private static final int CORES = Runtime.getRuntime().availableProcessors();

  private HostArrays() {}

  private static long bytes(String[] arguments) {
    return (arguments.length > 0 ? Long.parseLong(arguments[0]) : 500) * 1_000_000;
  }

  /// Measures loads of an F32 file in the page cache into arrays.
  static void decode(String[] arguments) throws Exception {
    Path file = Files.createTempFile("gantry-decode-", ".safetensors");
    try {
      long bytes = RandomCheckpoint.make(file, bytes(arguments), TENSORS, "F32");
      new Comparison("a file's arrays", bytes)
          .warm(List.of(file))
          .add(HostCeilings.pageCache(file, CORES))
          .add("gantry", TENSORS, () -> load(file))
          .add(JvmPeers.djl(file))
          .print(TURNS);
    } finally {
      Files.delete(file);
    }
  }

  private static long load(Path file) {
    try (NDManager manager = NDManager.newBaseManager();
        Weights weights = Weights.open(file);
        NDList arrays = weights.load(manager)) {
      return arrays.size();
    }
  }

  /// Measures durable saves of a model's F32 parameters. Gantry's saves include a manifest and
  /// checksums; DJL's `NDList.encode` and `Model.save` are followed by `fsync`. Files are removed
  /// while the clock is stopped.
  static void save(String[] arguments) throws Exception {
    Path folder = Files.createTempDirectory("gantry-save-");
    long units = (long) Math.sqrt(bytes(arguments) / (double) TENSORS / Float.BYTES);
    long bytes = TENSORS * units * units * Float.BYTES;
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < TENSORS; i++) {
      block.add(Linear.builder().setUnits(units).optBias(false).build());
    }
    try (Model model = Model.newInstance("save")) {
      block.initialize(model.getNDManager(), DataType.FLOAT32, new Shape(1, units));
      model.setBlock(block);
      NDList arrays = new NDList();
      for (Pair<String, Parameter> parameter : block.getParameters()) {
        NDArray array = parameter.getValue().getArray();
        array.setName(parameter.getKey());
        arrays.add(array);
      }
      Path file = folder.resolve("file");
      new Comparison("durable saves of arrays", bytes)
          .before(() -> empty(folder))
          .add(HostCeilings.directWrite(file, CORES, bytes))
          .add(HostCeilings.cachedWrite(file, CORES, bytes))
          .add("gantry", () -> checkpoint(folder, model))
          .add("DJL NDList.encode", () -> encode(file, arrays))
          .add("DJL Model.save", () -> save(folder, model))
          .print(TURNS);
    } finally {
      empty(folder);
      Files.delete(folder);
    }
  }

  private static void checkpoint(Path folder, Model model) {
    try (CheckpointSaver saver = CheckpointSaver.builder().setPath(folder).build()) {
      var _ = saver.save(SaveRequest.builder().setStep(1).setModel(model).build()).join();
    }
  }

  private static void encode(Path file, NDList arrays) throws IOException {
    try (FileChannel channel =
            FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        OutputStream out = Channels.newOutputStream(channel)) {
      arrays.encode(out, NDList.Encoding.SAFETENSORS);
      channel.force(true);
    }
  }

  private static void save(Path folder, Model model) throws IOException {
    model.save(folder, "model");
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
          channel.force(true);
        }
      }
    }
  }

  private static void empty(Path folder) throws IOException, InterruptedException {
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path file : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        if (!file.equals(folder)) {
          Files.delete(file);
        }
      }
    }
    // Some disks take long to remove files; `sync` waits for them.
    var _ = new ProcessBuilder("sync").start().waitFor();
  }
}
