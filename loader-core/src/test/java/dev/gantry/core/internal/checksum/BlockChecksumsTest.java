// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.testing.TestFiles;
import java.lang.foreign.MemorySegment;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

class BlockChecksumsTest {
  @Property
  void areThoseOfTheBlocksHoweverTheBytesCome(
      @ForAll @IntRange(max = 300) int length,
      @ForAll @IntRange(min = 1, max = 100) int block,
      @ForAll @Size(min = 1, max = 9) List<@IntRange(min = 1, max = 120) Integer> pieces) {
    MemorySegment bytes = MemorySegment.ofArray(TestFiles.bytes(length, length));
    BlockChecksums whole = new BlockChecksums(length, block);
    BlockChecksums known = new BlockChecksums(length, block);
    int done = 0;
    for (int i = 0; done < length; i++) {
      MemorySegment piece =
          bytes.asSlice(done, Math.min(pieces.get(i % pieces.size()), length - done));
      whole.add(piece);
      for (long at = 0; at < piece.byteSize(); ) {
        long step = Math.min(piece.byteSize() - at, known.leftOfBlock());
        known.add(Crc32c.of(piece.asSlice(at, step)), step);
        at += step;
      }
      done += (int) piece.byteSize();
    }
    int[] expected = new int[Math.ceilDiv(length, block)];
    for (int i = 0; i < expected.length; i++) {
      expected[i] = Crc32c.of(bytes.asSlice(i * block, Math.min(block, length - i * block)));
    }
    assertThat(whole.sums()).isEqualTo(expected);
    assertThat(known.sums()).isEqualTo(expected);
  }

  @Test
  @Timeout(value = 20, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
  void moreBytesThanWereToComeAreRefused() {
    BlockChecksums sums = new BlockChecksums(10, 4);
    sums.add(MemorySegment.ofArray(new byte[7]));
    assertThatThrownBy(() -> sums.add(MemorySegment.ofArray(new byte[4])))
        .hasMessage("4 bytes, where 3 are still to come");
    sums.add(MemorySegment.ofArray(new byte[3]));
    assertThatThrownBy(() -> sums.add(MemorySegment.ofArray(new byte[1])))
        .hasMessage("1 bytes, where 0 are still to come");
    assertThat(sums.sums()).hasSize(3);
  }

  @Test
  void whatIsKnownOnlyAsASumMustNotCrossBlocks() {
    BlockChecksums sums = new BlockChecksums(10, 4);
    sums.add(1, 3);
    assertThatThrownBy(() -> sums.add(1, 2)).hasMessage("2 bytes, where a block ends after 1");
    assertThatThrownBy(sums::sums).hasMessage("only 3 of 10 bytes were summed");
    assertThatThrownBy(() -> new BlockChecksums(1, 0)).hasMessage("1 bytes in blocks of 0");
  }
}
