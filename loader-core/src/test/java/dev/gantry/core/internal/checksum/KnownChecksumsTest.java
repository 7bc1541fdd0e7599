// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

class KnownChecksumsTest {
  private static final int LENGTH = 5000;
  private static final Location FILE = Location.of(Path.of("file"));

  private static List<KnownChecksums.Known> known(Random random, byte[] bytes) {
    List<KnownChecksums.Known> known = new ArrayList<>();
    for (int i = random.nextInt(12); i >= 0; i--) {
      int length = random.nextInt(random.nextBoolean() ? 20 : LENGTH);
      int offset = random.nextInt(LENGTH - length + 1);
      known.add(
          new KnownChecksums.Known(
              new Extent(FILE, offset, length),
              "tensor " + i,
              Crc32c.of(MemorySegment.ofArray(bytes).asSlice(offset, length))));
    }
    return known;
  }

  /// Adds all bytes in pieces, in random order.
  private static void addInPieces(Random random, byte[] bytes, KnownChecksums sums) {
    List<int[]> pieces = new ArrayList<>();
    for (int at = 0; at < LENGTH; ) {
      int step = Math.min(LENGTH - at, 1 + random.nextInt(1000));
      pieces.add(new int[] {at, step});
      at += step;
    }
    // One piece is added twice, as after a repeated read.
    pieces.add(pieces.get(random.nextInt(pieces.size())));
    Collections.shuffle(pieces, random);
    for (int[] piece : pieces) {
      sums.add(FILE, piece[0], MemorySegment.ofArray(bytes).asSlice(piece[0], piece[1]));
    }
  }

  @Property(tries = 500)
  void anyRangesAreComparedWhateverThePiecesAre(@ForAll long seed) {
    Random random = new Random(seed);
    byte[] bytes = TestFiles.bytes(seed, LENGTH);
    KnownChecksums sums = new KnownChecksums(known(random, bytes));
    addInPieces(random, bytes, sums);
    assertThat(sums.compare()).isEmpty();
    // The first comparison has removed the checksums.
    assertThat(sums.compare()).isEmpty();
  }

  @Property(tries = 500)
  void aChangedByteIsFoundInTheRangesThatHaveIt(@ForAll long seed) {
    Random random = new Random(seed);
    byte[] bytes = TestFiles.bytes(seed, LENGTH);
    List<KnownChecksums.Known> known = known(random, bytes);
    int at = random.nextInt(LENGTH);
    bytes[at] ^= (byte) (1 << random.nextInt(8));
    KnownChecksums sums = new KnownChecksums(known);
    addInPieces(random, bytes, sums);
    boolean isInAny =
        known.stream()
            .map(KnownChecksums.Known::extent)
            .anyMatch(extent -> extent.offset() <= at && at < extent.end());
    if (isInAny) {
      assertThatThrownBy(sums::compare)
          .isInstanceOf(MalformedFileException.class)
          .hasMessageContaining("checksum-mismatch: tensor ");
    } else {
      assertThat(sums.compare()).isEmpty();
    }
  }

  @Property(tries = 200)
  void whatLacksBytesIsNotCompared(@ForAll long seed) {
    Random random = new Random(seed);
    byte[] bytes = TestFiles.bytes(seed, LENGTH);
    List<KnownChecksums.Known> known = known(random, bytes);
    KnownChecksums sums = new KnownChecksums(known);
    int from = random.nextInt(LENGTH);
    int to = from + random.nextInt(LENGTH - from);
    sums.add(FILE, from, MemorySegment.ofArray(bytes).asSlice(from, to - from));
    sums.add(Location.of(Path.of("other")), 0, MemorySegment.ofArray(bytes));
    assertThat(sums.compare())
        .containsExactlyInAnyOrderElementsOf(
            known.stream()
                .filter(each ->
                    each.extent().length() > 0
                        && (each.extent().offset() < from || each.extent().end() > to))
                .toList());
  }
}
