// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.checksum;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.EdgeCasesMode;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.PropertyDefaults;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@PropertyDefaults(edgeCases = EdgeCasesMode.NONE)
class Crc32cTest {
  /// The step in which memory is summed; tests use lengths around it.
  private static final int STEP = 1 << 20;

  private static int expected(byte[] bytes) {
    CRC32C checksum = new CRC32C();
    checksum.update(bytes);
    return (int) checksum.getValue();
  }

  private static int of(byte[] bytes) {
    return Crc32c.of(MemorySegment.ofArray(bytes));
  }

  /// RFC 3720, B.4, gives the checksums of 32 bytes; the checksum of the digits is CRC-32C's
  /// customary check value.
  @Test
  void knownChecksums() {
    byte[] ones = new byte[32];
    Arrays.fill(ones, (byte) 0xff);
    assertThat(of(new byte[32])).isEqualTo(0x8A9136AA);
    assertThat(of(ones)).isEqualTo(0x62A8AB43);
    assertThat(of("123456789".getBytes(StandardCharsets.US_ASCII))).isEqualTo(0xE3069283);
    assertThat(of(new byte[0])).isEqualTo(Crc32c.OF_NOTHING);
  }

  @Test
  void isThatOfAnyArraysBytes() {
    byte[] bytes = TestFiles.bytes(1, STEP + 8);
    long[] numbers = new long[bytes.length / Long.BYTES];
    MemorySegment segment = MemorySegment.ofArray(numbers).copyFrom(MemorySegment.ofArray(bytes));
    assertThat(Crc32c.of(segment)).isEqualTo(expected(bytes));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 7, 4096, STEP - 1, STEP, STEP + 1, 3 * STEP + 5})
  void isThatOfTheJdkOfAnyMemory(int length) {
    byte[] bytes = TestFiles.bytes(length, length);
    try (Arena arena = Arena.ofShared()) {
      MemorySegment off =
          arena.allocate(length + 1L).asSlice(1).copyFrom(MemorySegment.ofArray(bytes));
      assertThat(Crc32c.of(off)).isEqualTo(expected(bytes));
    }
    assertThat(of(bytes)).isEqualTo(expected(bytes));
  }

  @Property
  void aWholeIsCombinedOfItsParts(
      @ForAll long seed, @ForAll @Size(max = 12) List<@IntRange(max = 5000) Integer> cuts) {
    byte[] bytes = TestFiles.bytes(seed, 5000);
    int[] borders = cuts.stream().mapToInt(Integer::intValue).sorted().toArray();
    int sum = Crc32c.OF_NOTHING;
    int from = 0;
    for (int i = 0; i <= borders.length; i++) {
      int to = i < borders.length ? borders[i] : bytes.length;
      MemorySegment part = MemorySegment.ofArray(bytes).asSlice(from, to - from);
      sum = Crc32c.combine(sum, Crc32c.of(part), part.byteSize());
      from = to;
    }
    assertThat(sum).isEqualTo(expected(bytes));
  }

  /// Lengths so large that no test could make such data.
  @Provide
  Arbitrary<Long> anyLength() {
    return Arbitraries.oneOf(
        Arbitraries.longs().between(0, Long.MAX_VALUE / 2),
        Arbitraries.longs().between((1L << 32) - 3, (1L << 32) + 3),
        Arbitraries.longs().between(0, 5));
  }

  @Property
  void itDoesNotMatterWhichAreCombinedFirst(
      @ForAll int first,
      @ForAll int second,
      @ForAll int third,
      @ForAll("anyLength") long secondLength,
      @ForAll("anyLength") long thirdLength) {
    int left = Crc32c.combine(Crc32c.combine(first, second, secondLength), third, thirdLength);
    int right =
        Crc32c.combine(
            first, Crc32c.combine(second, third, thirdLength), secondLength + thirdLength);
    assertThat(left).isEqualTo(right);
  }

  /// This test sums more than 4 GiB, which takes a second.
  @Test
  void moreThanFourGibibytes() {
    byte[] block = TestFiles.bytes(5, 1 << 20);
    byte[] tail = TestFiles.bytes(6, 77);
    int blocks = (1 << 12) + 1;
    CRC32C whole = new CRC32C();
    int rest = Crc32c.OF_NOTHING;
    for (int i = 0; i < blocks; i++) {
      whole.update(block);
      rest = Crc32c.combine(rest, of(block), block.length);
    }
    whole.update(tail);
    assertThat(Crc32c.combine(rest, of(tail), tail.length)).isEqualTo((int) whole.getValue());
    long length = (long) blocks * block.length;
    // The result must be the same if all of this comes behind a first byte.
    int head = of(new byte[] {1});
    assertThat(Crc32c.combine(Crc32c.combine(head, rest, length), of(tail), tail.length))
        .isEqualTo(Crc32c.combine(head, (int) whole.getValue(), length + tail.length));
  }

  @Property
  void nothingAddsNothing(@ForAll int sum, @ForAll("anyLength") long length) {
    assertThat(Crc32c.combine(sum, Crc32c.OF_NOTHING, 0)).isEqualTo(sum);
    assertThat(Crc32c.combine(Crc32c.OF_NOTHING, sum, length)).isEqualTo(sum);
  }
}
