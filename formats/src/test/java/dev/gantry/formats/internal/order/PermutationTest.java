// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.stream.LongStream;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

class PermutationTest {
  private static final int LARGE = Permutation.LARGEST_TABLE;

  @Property(tries = 200)
  void everyNumberComesOnce(@ForAll @IntRange(max = 3 * LARGE) int size, @ForAll long key) {
    Permutation permutation = Permutation.of(size, key);
    assertThat(LongStream.range(0, size).map(permutation::at).sorted().toArray())
        .isEqualTo(LongStream.range(0, size).toArray());
  }

  @Property(tries = 200)
  void manyAtOnceAreThoseThatComeOneByOne(
      @ForAll @IntRange(min = 1, max = 3 * LARGE) int size,
      @ForAll long key,
      @ForAll @IntRange(max = 3 * LARGE) int first,
      @ForAll @IntRange(max = 100) int most) {
    Permutation permutation = Permutation.of(size, key);
    long[] numbers = new long[Math.max(0, Math.min(most, size - first))];
    permutation.fill(first, numbers);
    assertThat(numbers)
        .isEqualTo(LongStream.range(first, first + numbers.length).map(permutation::at).toArray());
  }

  @Property
  void largeSizesAreNotLeft(
      @ForAll @LongRange(min = LARGE + 1, max = EpochOrder.MAX_SAMPLES) long size,
      @ForAll long key) {
    Permutation permutation = Permutation.of(size, key);
    LongStream ends = LongStream.concat(LongStream.range(0, 20), LongStream.range(size - 20, size));
    assertThat(ends.map(permutation::at)).doesNotHaveDuplicates().allMatch(n -> n >= 0 && n < size);
  }

  /// In 600 orders of a few numbers, each number is at each position about equally often.
  @Example
  void noPlaceIsPreferred() {
    int size = 6;
    int orders = 600;
    int[][] counts = new int[size][size];
    for (int key = 0; key < orders; key++) {
      Permutation permutation = Permutation.of(size, Mix.at(1, key));
      for (int i = 0; i < size; i++) {
        counts[i][(int) permutation.at(i)]++;
      }
    }
    for (int[] ofPlace : counts) {
      for (int count : ofPlace) {
        assertThat(count).isBetween(60, 140);
      }
    }
  }

  /// A random order has one fixed point on average, and about as many ascents as descents.
  @Example
  void largeOrdersLookRandom() {
    int size = 10_000;
    int orders = 100;
    long fixed = 0;
    long ascents = 0;
    for (int key = 0; key < orders; key++) {
      Permutation permutation = Permutation.of(size, Mix.at(2, key));
      fixed += LongStream.range(0, size).filter(i -> permutation.at(i) == i).count();
      ascents +=
          LongStream.range(1, size).filter(i -> permutation.at(i) > permutation.at(i - 1)).count();
    }
    assertThat(fixed).isBetween(50L, 160L);
    assertThat(ascents).isBetween(498_000L, 502_000L);
  }

  /// A change of one bit of the key changes nearly every position.
  @Property(tries = 200)
  void keysGiveOrdersOfTheirOwn(@ForAll long key, @ForAll @IntRange(max = 63) int bit) {
    int size = 2 * LARGE;
    Permutation one = Permutation.of(size, key);
    Permutation other = Permutation.of(size, key ^ (1L << bit));
    assertThat(LongStream.range(0, size).filter(i -> one.at(i) == other.at(i)).count())
        .isLessThan(20);
  }
}
