// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.benchmarks.datasets.DatasetBench;
import dev.gantry.benchmarks.datasets.HostDatasetBench;
import dev.gantry.benchmarks.datasets.PicturesBench;
import dev.gantry.benchmarks.datasets.TwoGpuBench;
import dev.gantry.benchmarks.harness.RandomCheckpoint;
import dev.gantry.benchmarks.soak.Soak;
import java.nio.file.Path;
import java.util.Arrays;

/// Starts every measurement besides `gantry bench`: `Measure NAME ARGUMENTS`. This class uses
/// loops and switches only, without lambdas and streams, because processes whose first load is
/// measured start here and would pay for them.
public final class Measure {
  private static final String USAGE =
      """
      usage: Measure NAME ARGUMENTS
      make FILE BYTES TENSORS [BF16|F32]
      decode [MEGABYTES]
      save-arrays [MEGABYTES]
      into FOLDER [BYTES]
      first TURNS [MEGABYTES...]
      first-device FILE DEVICE [prepare]
      first-answer LOCATION DEVICE plain|together
      model FOLDER LAYERS
      texts FOLDER DEVICE
      generate FOLDER DEVICE TEXTS [PROMPT]
      dequantise FILE|FOLDER [PYTHON]
      save DEVICE FOLDER FILE...
      overlap-save FOLDER [LAYERS UNITS ROWS]
      s3 s3://BUCKET/FOLDER/|loopback [ROUNDS [GB]]
      loads DEVICE FILE FILE...
      cancels DEVICE FILE LOADS...
      several-gpus replicas|slices FILE DEVICES [TURNS]
      datasets DEVICE rows|random|mapped|streams|first FOLDER BYTES
      host-datasets make|records|decode|shards|small FOLDER BYTES
      pictures FOLDER [PYTHON [PICTURES]]
      two-gpus FOLDER BYTES
      soak MINUTES [DEVICE,DEVICE... [SEED [FOLDER]]]
      """;

  private Measure() {}

  public static void main(String[] arguments) throws Exception {
    String name = arguments.length == 0 ? "" : arguments[0];
    String[] rest = Arrays.copyOfRange(arguments, Math.min(1, arguments.length), arguments.length);
    if (rest.length < fewest(name)) {
      System.err.print(USAGE);
      System.exit(64);
    }
    switch (name) {
      case "make" -> make(rest);
      case "decode" -> HostArrays.decode(rest);
      case "save-arrays" -> HostArrays.save(rest);
      case "into" -> IntoBench.main(rest);
      case "dequantise" -> DequantiseBench.main(rest);
      case "first" -> FirstLoads.inTurns(rest);
      case "first-device" -> FirstLoads.device(rest);
      case "first-answer" -> FirstLoads.answer(rest);
      case "model" -> ModelBench.main(rest);
      case "texts" -> TextsBench.main(rest);
      case "generate" -> GenerateBench.main(rest);
      case "save" -> SaveBench.main(rest);
      case "overlap-save" -> OverlapSaveBench.main(rest);
      case "s3" -> S3Bench.main(rest);
      case "loads" -> LoadsBench.main(rest);
      case "cancels" -> CancelBench.main(rest);
      case "several-gpus" -> SeveralGpusBench.main(rest);
      case "datasets" -> DatasetBench.main(rest);
      case "host-datasets" -> HostDatasetBench.main(rest);
      case "pictures" -> PicturesBench.main(rest);
      case "two-gpus" -> TwoGpuBench.main(rest);
      case "soak" -> Soak.main(rest);
      default -> throw new IllegalArgumentException(name);
    }
  }

  /// Returns how many arguments a measurement needs, by its line of the usage; the largest integer
  /// if no line names the measurement.
  private static int fewest(String name) {
    for (String line : USAGE.split("\n", -1)) {
      String[] words = line.split(" ", -1);
      if (words[0].equals(name) && !name.isEmpty()) {
        int needed = 0;
        while (needed + 1 < words.length && !words[needed + 1].startsWith("[")) {
          needed++;
        }
        return needed;
      }
    }
    return Integer.MAX_VALUE;
  }

  private static void make(String[] arguments) throws Exception {
    var _ =
        RandomCheckpoint.make(
            Path.of(arguments[0]),
            Long.parseLong(arguments[1]),
            Integer.parseInt(arguments[2]),
            arguments.length > 3 ? arguments[3] : "BF16");
  }
}
