// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.gantry.core.Extent;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class FileSumsTest {
  @TempDir Path folder;

  private static int sum(byte[] bytes, Extent extent) {
    MemorySegment all = MemorySegment.ofArray(bytes);
    return Crc32c.of(all.asSlice(extent.offset(), extent.length()));
  }

  @Test
  void rangesOfSeveralFilesInAnyOrder() {
    int length = 300_001;
    Random random = new Random(1);
    List<Extent> extents = new ArrayList<>();
    List<Integer> expected = new ArrayList<>();
    for (int i = 0; i < 200; i++) {
      int seed = 1 + random.nextInt(3);
      Path file = TestFiles.write(folder.resolve("file" + seed), seed, length);
      int from = random.nextInt(length);
      Extent extent = new Extent(file, from, i % 10 == 0 ? 0 : random.nextInt(length - from));
      extents.add(extent);
      expected.add(sum(TestFiles.bytes(seed, length), extent));
    }
    try (GantrySession session = GantrySession.open()) {
      assertThat(session.checksums(extents)).containsExactly(expected.toArray(Integer[]::new));
      assertThat(session.checksums(List.of())).isEmpty();
    }
  }

  @Test
  void aRangeOfSeveralPieces() {
    int length = Math.toIntExact(9 * PlanLimits.DEFAULT.requestBytes() + 4711);
    Extent extent = new Extent(TestFiles.write(folder.resolve("a"), 5, length), 1, length - 1L);
    try (GantrySession session = GantrySession.open()) {
      assertThat(session.checksums(List.of(extent)))
          .containsExactly(sum(TestFiles.bytes(5, length), extent));
    }
  }

  @Test
  void aFileThatEndsBeforeTheRange() {
    Path file = TestFiles.write(folder.resolve("a"), 1, 1000);
    try (GantrySession session = GantrySession.open()) {
      List<Extent> extents = List.of(new Extent(file, 0, 10), new Extent(file, 990, 11));
      assertThatExceptionOfType(TransferException.class)
          .isThrownBy(() -> session.checksums(extents))
          .withMessageContaining(file.toString());
    }
  }
}
