// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.ChildJvm;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// Samples take no heap, when they are written and when they are read.
class DatasetHeapTest {
  private static final int SAMPLES = 256;

  @TempDir private Path folder;

  @Test
  void aHeapOf32MegabytesIsEnoughFor256() {
    // The test needs memory for the samples twice in the page cache, for the shards being written,
    // and for batches.
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
