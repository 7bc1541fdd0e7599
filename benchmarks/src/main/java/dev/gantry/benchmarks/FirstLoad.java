// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// The first load of a process, with DJL's own ways beside it, each in a fresh JVM with the options of
/// this one: `FirstLoad TURNS [MEGABYTES...]`. Prints medians in milliseconds: from `main` to all
/// tensors loaded, once with libtorch loaded before that and once without, and from the start of the
/// process.
public final class FirstLoad {
  private static final int LAYERS = 100;
  private static final List<String> WAYS = List.of("gantry", "decode", "model");

  private FirstLoad() {}

  public static void main(String[] arguments) throws Exception {
    if (WAYS.contains(arguments[0])) {
      once(arguments[0], Path.of(arguments[1]), arguments[2].equals("torch"));
    } else {
      all(arguments);
    }
  }

  private static void all(String[] arguments) throws Exception {
    int turns = Integer.parseInt(arguments[0]);
    Path folder = Files.createTempDirectory("first-load");
    System.out.println(
        "file       way     libtorch  from main, least  its CPU time  from process start");
    for (String megabytes : Arrays.asList(arguments).subList(1, arguments.length)) {
      make(folder, Integer.parseInt(megabytes));
      for (String torch : List.of("torch", "none")) {
        List<List<double[]>> results = new ArrayList<>();
        WAYS.forEach(_ -> results.add(new ArrayList<>()));
        for (int turn = 0; turn < turns; turn++) {
          for (int way = 0; way < WAYS.size(); way++) {
            results.get(way).add(child(WAYS.get(way), folder, torch));
          }
        }
        for (int way = 0; way < WAYS.size(); way++) {
          System.out.printf(
              Locale.ROOT,
              "%5s MB   %-7s %-9s %6.0f %6.0f ms %11.0f ms %13.0f ms%n",
              megabytes,
              WAYS.get(way),
              torch.equals("torch") ? "loaded" : "not yet",
              median(results.get(way), 0),
              results.get(way).stream().mapToDouble(result -> result[0]).min().orElseThrow(),
              median(results.get(way), 1),
              median(results.get(way), 2));
        }
      }
    }
    try (var files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
    }
    Files.delete(folder);
  }

  private static double median(List<double[]> results, int place) {
    double[] sorted = results.stream().mapToDouble(result -> result[place]).sorted().toArray();
    return sorted[sorted.length / 2];
  }

  private static double[] child(String way, Path folder, String torch) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    command.addAll(
        List.of(
            "-cp",
            System.getProperty("java.class.path"),
            FirstLoad.class.getName(),
            way,
            folder.toString(),
            torch));
    Process process =
        new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
    String line =
        new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    if (process.waitFor() != 0) {
      throw new IllegalStateException(way + " failed");
    }
    String[] parts = line.split(" ");
    return Arrays.stream(parts).mapToDouble(Double::parseDouble).toArray();
  }

  private static Block block(int megabytes) {
    int width = (int) Math.sqrt(megabytes * 1e6 / LAYERS / Float.BYTES);
    SequentialBlock block = new SequentialBlock();
    for (int i = 0; i < LAYERS; i++) {
      block.add(Linear.builder().setUnits(width).build());
    }
    return block;
  }

  private static void make(Path folder, int megabytes) throws Exception {
    Files.writeString(folder.resolve("size"), Integer.toString(megabytes));
    try (NDManager manager = NDManager.newBaseManager();
        Model model = Model.newInstance("model", "PyTorch")) {
      int width = (int) Math.sqrt(megabytes * 1e6 / LAYERS / Float.BYTES);
      Block block = block(megabytes);
      block.initialize(manager, DataType.FLOAT32, new Shape(1, width));
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

  private static void once(String way, Path folder, boolean torch) throws Exception {
    if (torch) {
      try (NDManager manager = NDManager.newBaseManager()) {
        var _ = manager.create(1f);
      }
    }
    // What a program has anyway.
    Block block = block(Integer.parseInt(Files.readString(folder.resolve("size"))));
    long cpu = cpuNanos();
    long begin = System.nanoTime();
    Path file = folder.resolve("model.safetensors");
    switch (way) {
      case "gantry" -> {
        NDManager manager = NDManager.newBaseManager();
        try (Weights weights = Weights.open(file)) {
          told(begin, cpu, weights.load(manager).size());
        }
      }
      case "decode" -> {
        NDManager manager = NDManager.newBaseManager();
        try (InputStream in = new BufferedInputStream(Files.newInputStream(file))) {
          told(begin, cpu, NDList.decode(manager, in).size());
        }
      }
      case "model" -> {
        Model model = Model.newInstance("model", "PyTorch");
        model.setBlock(block);
        model.load(folder, "model");
        told(begin, cpu, block.getParameters().size());
      }
      default -> throw new IllegalArgumentException(way);
    }
  }

  private static long cpuNanos() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  private static void told(long begin, long cpu, int tensors) throws IOException {
    long end = System.nanoTime();
    double used = (cpuNanos() - cpu) / 1e6;
    double sinceStart =
        System.currentTimeMillis() - ManagementFactory.getRuntimeMXBean().getStartTime();
    if (tensors != 2 * LAYERS) {
      throw new IllegalStateException(tensors + " tensors");
    }
    System.out.println((end - begin) / 1e6 + " " + used + " " + sinceStart);
    System.exit(0);
  }
}
