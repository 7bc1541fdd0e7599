// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;

/// Datasets on a machine without a GPU, beside what else there is on the JVM and what the machine
/// can do: `host-datasets make|records|decode|shards|small|heap FOLDER BYTES`.
///
/// `make` makes samples of so many bytes in `FOLDER`, where they are not there; what comes after it
/// must be given the same number. A run counts from opening the files to the last batch or record;
/// files are in the page cache. Every contestant's values are compared once with what was written.
///
/// `benchmarks/datasets FOLDER`
public final class HostDatasetBench {
  private static final int TURNS = 5;

  /// The images of records of some 200 bytes, and of some 4 KB.
  private static final int[] SMALL_IMAGE_BYTES = {144, 4040};

  private static final long SMALL_BYTES = 500_000_000;

  private HostDatasetBench() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[1]);
    try (GantrySession session = GantrySession.open()) {
      ImageSamples samples = ImageSamples.in(folder, Long.parseLong(arguments[2]), session);
      switch (arguments[0]) {
        case "make" -> {}
        case "records" -> {
          new RecordBench(session, RecordFiles.of(samples)).run(TURNS);
          for (int imageBytes : SMALL_IMAGE_BYTES) {
            new RecordBench(session, small(session, folder, imageBytes)).run(TURNS);
          }
        }
        case "decode" -> {
          new DecodeBench(session, RecordFiles.of(samples)).run(TURNS);
          for (int imageBytes : SMALL_IMAGE_BYTES) {
            new DecodeBench(session, small(session, folder, imageBytes)).run(TURNS);
          }
        }
        case "shards" -> new ShardBench(session, samples.shards()).run(TURNS);
        case "small" -> new SmallBench(session, folder).run(TURNS);
        case "heap" -> new HeapBench(session, samples).run();
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
  }

  private static RecordFiles small(GantrySession session, Path folder, int imageBytes)
      throws Exception {
    return RecordFiles.small(session, folder, imageBytes, SMALL_BYTES);
  }
}
