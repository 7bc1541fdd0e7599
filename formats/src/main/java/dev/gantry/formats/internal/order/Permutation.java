// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import java.util.Arrays;

/// A random permutation of the numbers below a size. Immutable.
@FunctionalInterface
interface Permutation {
  /// The largest size for which a table is shuffled: a Feistel network of few bits does not give all orders
  /// equally often.
  int LARGEST_TABLE = 1 << 12;

  /// The number at `index`.
  long at(long index);

  /// Fills `numbers` with the numbers at `first` and the indices after it.
  default void fill(long first, long[] numbers) {
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = at(first + i);
    }
  }

  /// @param size up to 2^62
  static Permutation of(long size, long key) {
    if (size > LARGEST_TABLE) {
      return new Feistel(size, key);
    }
    int[] table = shuffled((int) size, key);
    return index -> table[Math.toIntExact(index)];
  }

  /// Returns the numbers from 0 to `size`, exclusively, in random order.
  static int[] shuffled(int size, long key) {
    int[] order = new int[size];
    for (int i = 0; i < size; i++) {
      int other = (int) Mix.below(i + 1L, key, i);
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }

  /// A Feistel network over the smallest power of two that covers the size. A result past the size goes
  /// through the network again (cycle walking), less than twice on average.
  final class Feistel implements Permutation {
    private static final int ROUNDS = 8;

    private final long size;
    private final int[] keys = new int[ROUNDS];
    private final int lowBits;
    private final int lowMask;
    private final int highMask;

    Feistel(long size, long key) {
      this.size = size;
      int bits = Long.SIZE - Long.numberOfLeadingZeros(size - 1);
      this.lowBits = bits / 2;
      this.lowMask = (1 << lowBits) - 1;
      this.highMask = (1 << (bits - lowBits)) - 1;
      for (int round = 0; round < ROUNDS; round++) {
        keys[round] = (int) (Mix.at(key, round) >>> Integer.SIZE);
      }
    }

    @Override
    public long at(long index) {
      long[] number = {index};
      walk(number);
      return number[0];
    }

    @Override
    public void fill(long first, long[] numbers) {
      for (int i = 0; i < numbers.length; i++) {
        numbers[i] = first + i;
      }
      walk(numbers);
    }

    /// Permutes all numbers together: the rounds of one number depend on each other, but many numbers run
    /// in the processor's vector units.
    private void walk(long[] numbers) {
      int count = numbers.length;
      int[] lows = new int[count];
      int[] highs = new int[count];
      int[] places = new int[count];
      Arrays.setAll(places, place -> place);
      for (int left = count; left > 0; ) {
        for (int i = 0; i < left; i++) {
          lows[i] = (int) numbers[places[i]] & lowMask;
          highs[i] = (int) (numbers[places[i]] >>> lowBits);
        }
        encrypt(lows, highs, left);
        int past = 0;
        for (int i = 0; i < left; i++) {
          int place = places[i];
          numbers[place] = ((long) highs[i] << lowBits) | lows[i];
          if (numbers[place] >= size) {
            places[past++] = place;
          }
        }
        left = past;
      }
    }

    private void encrypt(int[] lows, int[] highs, int count) {
      for (int round = 0; round < ROUNDS; round += 2) {
        mixInto(lows, highs, count, keys[round], lowMask);
        mixInto(highs, lows, count, keys[round + 1], highMask);
      }
    }

    private static void mixInto(int[] halves, int[] others, int count, int key, int mask) {
      for (int i = 0; i < count; i++) {
        halves[i] ^= Mix.of32(others[i] ^ key) & mask;
      }
    }
  }
}
