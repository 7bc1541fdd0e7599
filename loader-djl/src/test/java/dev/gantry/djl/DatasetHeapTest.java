// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Samples take no heap, neither those that are written nor those that are read.
@Tag("beside")
class DatasetHeapTest {
  private static final int SAMPLES = 256;

  @TempDir private Path folder;

  @Test
  void aHeapOf32MegabytesIsEnoughFor256() {
    // The samples twice in the page cache, shards in the making, and batches.
    Machine.assumeAvailable(1L << 30);
    long labels = SAMPLES * (SAMPLES - 1) / 2;
    String sums = ": labels " + labels + ", pixels " + (labels << 20);
    assertThat(
            ChildJvm.run(
                    "32m",
                    Map.of(),
                    DatasetHeapProgram.class,
                    folder.toString(),
                    Integer.toString(SAMPLES))
                .requirePassed())
        .contains("shards" + sums, "index" + sums, "stream" + sums);
  }
}
