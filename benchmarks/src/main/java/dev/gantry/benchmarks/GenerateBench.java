// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.types.DataType;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.djl.LoadOptions;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextGenerator;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.TreeSet;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/// Measures how many tokens a second a model generates: `generate FOLDER DEVICE TEXTS [PROMPT]`.
/// `generate.py` makes the folder, and measures transformers with the same prompts.
/// `GANTRY_STARTED` gives the process's start in nanoseconds since 1970.
final class GenerateBench {
  private static final int TURNS = 4;

  private final Model model;
  private final DataType type;
  private final int length;
  private final int tokens;

  private GenerateBench(Model model, DataType type, int length, int tokens) {
    this.model = model;
    this.type = type;
    this.length = length;
    this.tokens = tokens;
  }

  static void main(String[] arguments) throws Exception {
    Device device = Device.fromName(arguments[1]);
    int texts = Integer.parseInt(arguments[2]);
    int length = arguments.length > 3 ? Integer.parseInt(arguments[3]) : 128;
    DataType type = device.isGpu() ? DataType.BFLOAT16 : DataType.FLOAT32;
    LoadOptions options = LoadOptions.builder().optCast(type).build();
    try (Model model = HubModel.of(Path.of(arguments[0])).load(device, options)) {
      long loaded = memory("VmRSS");
      GenerateBench bench = new GenerateBench(model, type, length, device.isGpu() ? 64 : 24);
      bench.seconds(1, bench.generator(1, 0));
      Instant started = Instant.EPOCH.plusNanos(Long.parseLong(System.getenv("GANTRY_STARTED")));
      System.out.printf(
          Locale.ROOT,
          "gantry\tfirst answer of the process\t%d ms\t%d MB of host memory at most, %d with the"
              + " weights loaded%n",
          Duration.between(started, Instant.now()).toMillis(),
          memory("VmHWM") >> 10,
          loaded >> 10);
      for (int count : new TreeSet<>(List.of(1, texts))) {
        bench.report("greedy", count, 0);
      }
      bench.report("sampled", 1, 0.8);
    }
  }

  /// Returns a value of `/proc/self/status` in KiB.
  private static long memory(String name) throws IOException {
    return Files.readAllLines(Path.of("/proc/self/status")).stream()
        .filter(line -> line.startsWith(name + ":"))
        .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
        .sum();
  }

  private TextGenerator generator(int most, double temperature) {
    return TextGenerator.builder().optMaxTokens(most).optTemperature(temperature).build();
  }

  private double seconds(int count, TextGenerator generator) throws Exception {
    List<long[]> prompts =
        IntStream.range(0, count)
            .mapToObj(
                i -> LongStream.range(0, length).map(j -> (i * 131L + j * 17) % 20_000).toArray())
            .toList();
    return Contender.seconds(() -> generator.generate(model, prompts));
  }

  private void report(String name, int count, double temperature) throws Exception {
    double first = Double.MAX_VALUE;
    double all = Double.MAX_VALUE;
    for (int turn = 0; turn < TURNS; turn++) {
      first = Math.min(first, seconds(count, generator(1, temperature)));
      all = Math.min(all, seconds(count, generator(tokens, temperature)));
    }
    System.out.printf(
        Locale.ROOT,
        "gantry\t%s\t%s\t%d x %d\tfirst token %.1f ms\t%.1f tokens/s%n",
        type.name().toLowerCase(Locale.ROOT),
        name,
        count,
        length,
        first * 1e3,
        count * (tokens - 1) / (all - first));
  }
}
