// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;
import java.util.List;

/// Compares datasets on a machine without a GPU with other JVM libraries and with the ceilings of
/// the machine: `host-datasets make|records|decode|shards|small FOLDER BYTES`.
///
/// `make` makes samples of about `BYTES` bytes in `FOLDER` if they are missing; the other
/// measurements must be given the same number. A run counts from the opening of the files to the
/// last batch or record. The files are in the page cache. The values of every contestant are
/// compared once with the values that were written.
///
/// The script `benchmarks/datasets FOLDER` runs all measurements.
public final class HostDatasetBench {
  private static final int TURNS = 5;
  private static final long SMALL_BYTES = 500_000_000;

  private HostDatasetBench() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[1]);
    try (GantrySession session = GantrySession.open()) {
      Samples photos = Samples.photos(session, folder, Long.parseLong(arguments[2]));
      // The records have about 150 KB, 200 bytes and 4 KB.
      List<Samples> sizes = List.of(photos, small(photos, 144), small(photos, 4040));
      switch (arguments[0]) {
        case "make" -> {
          var _ = photos.files();
        }
        case "records" -> {
          for (Samples samples : sizes) {
            new RecordBench(samples).records(TURNS);
          }
        }
        case "decode" -> {
          for (Samples samples : sizes) {
            new RecordBench(samples).batches(TURNS);
          }
        }
        case "shards" -> new ShardBench(session, photos).large(TURNS);
        case "small" -> new ShardBench(session, ShardBench.small(session, folder)).small(TURNS);
        default -> throw new IllegalArgumentException(arguments[0]);
      }
    }
  }

  private static Samples small(Samples like, int imageBytes) {
    return new Samples(
        like.session(),
        like.folder(),
        "small-" + imageBytes,
        TensorShape.of(imageBytes),
        SMALL_BYTES / imageBytes,
        4096);
  }
}
