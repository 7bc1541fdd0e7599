// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import ai.djl.Device;
import ai.djl.ndarray.types.DataType;
import dev.gantry.benchmarks.harness.Contender;
import dev.gantry.models.HubModel;
import dev.gantry.models.TextEmbedder;
import dev.gantry.models.TextOptions;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/// Measures how many texts a second an embedder turns into vectors: `TextsBench FOLDER DEVICE`.
/// `texts.py` makes the folder, and measures transformers and sentence-transformers with the same
/// texts.
final class TextsBench {
  private static final long LEAST_NANOS = 2_000_000_000L;
  private static final int[][] SHAPES = {{32, 128}, {256, 64}, {1, 16}};

  private TextsBench() {}

  static void main(String[] arguments) throws Exception {
    HubModel hub = HubModel.of(Path.of(arguments[0]));
    Device device = Device.fromName(arguments[1]);
    List<DataType> types =
        device.isGpu()
            ? List.of(DataType.FLOAT32, DataType.BFLOAT16, DataType.FLOAT16)
            : List.of(DataType.FLOAT32);
    for (DataType type : types) {
      // A call computes all texts in one batch, as texts.py does.
      TextOptions options =
          TextOptions.builder().optDevice(device).optDtype(type).optBatchTokens(256 * 64).build();
      try (TextEmbedder embedder = hub.embedder(options)) {
        for (int[] shape : SHAPES) {
          report(embedder, type, device.isGpu() ? 20 : 3, shape[0], shape[1]);
        }
      }
    }
  }

  private static void report(TextEmbedder embedder, DataType type, int runs, int count, int tokens)
      throws Exception {
    List<String> texts =
        IntStream.range(0, count)
            .mapToObj(i ->
                IntStream.range(0, tokens - 2)
                    .mapToObj(j -> "w" + (i * 131 + j * 17) % 20_000)
                    .collect(Collectors.joining(" ")))
            .toList();
    double best = Double.MAX_VALUE;
    // The JVM compiles the code for a single short text only after hundreds of passes.
    long end = System.nanoTime() + LEAST_NANOS;
    for (int run = 0; run < runs + 3 || System.nanoTime() < end; run++) {
      best = Math.min(best, Contender.seconds(() -> embedder.embed(texts)));
    }
    System.out.printf(
        Locale.ROOT,
        "gantry\t%s\t%dx%d\t%.1f texts/s%n",
        type.name().toLowerCase(Locale.ROOT),
        count,
        tokens,
        count / best);
  }
}
