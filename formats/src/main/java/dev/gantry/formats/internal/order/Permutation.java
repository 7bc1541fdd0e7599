// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

/// The numbers below a size in random order. Immutable.
@FunctionalInterface
interface Permutation {
  /// Up to here a table is made: a network of few bits does not reach every order equally often.
  int LARGEST_TABLE = 1 << 12;

  /// The number at `index`.
  long at(long index);

  /// The numbers at `first` and the indices after it, as many as `numbers` has room for.
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

  /// 0 to `size`, exclusively, in random order.
  static int[] shuffled(int size, long key) {
    int[] order = new int[size];
    for (int i = 0; i < size; i++) {
      int other = (int) Mix.below(i + 1L, key, i);
      order[i] = order[other];
      order[other] = i;
    }
    return order;
  }

  /// A Feistel network over the least power of two that covers the size. What falls past the size
  /// goes through it again (cycle walking), less than twice on average.
  final class Feistel implements Permutation {
    private static final int ROUNDS = 8;

    private final long size;
    private final long[] keys = new long[ROUNDS];
    private final int lowBits;
    private final long lowMask;
    private final long highMask;

    Feistel(long size, long key) {
      this.size = size;
      int bits = Long.SIZE - Long.numberOfLeadingZeros(size - 1);
      this.lowBits = bits / 2;
      this.lowMask = (1L << lowBits) - 1;
      this.highMask = (1L << (bits - lowBits)) - 1;
      for (int round = 0; round < ROUNDS; round++) {
        keys[round] = Mix.at(key, round);
      }
    }

    @Override
    public long at(long index) {
      long number = index;
      do {
        number = once(number);
      } while (number >= size);
      return number;
    }

    /// Round by round for all of them, which the processor overlaps: one number's rounds wait for each
    /// other.
    @Override
    public void fill(long first, long[] numbers) {
      int count = numbers.length;
      long[] highs = new long[count];
      for (int i = 0; i < count; i++) {
        highs[i] = (first + i) >>> lowBits;
        numbers[i] = (first + i) & lowMask;
      }
      for (int round = 0; round < ROUNDS; round += 2) {
        long lowKey = keys[round];
        long highKey = keys[round + 1];
        for (int i = 0; i < count; i++) {
          numbers[i] ^= Mix.at(lowKey, highs[i]) & lowMask;
          highs[i] ^= Mix.at(highKey, numbers[i]) & highMask;
        }
      }
      for (int i = 0; i < count; i++) {
        long number = (highs[i] << lowBits) | numbers[i];
        numbers[i] = number < size ? number : at(number);
      }
    }

    private long once(long number) {
      long low = number & lowMask;
      long high = number >>> lowBits;
      for (int round = 0; round < ROUNDS; round += 2) {
        low ^= Mix.at(keys[round], high) & lowMask;
        high ^= Mix.at(keys[round + 1], low) & highMask;
      }
      return high << lowBits | low;
    }
  }
}
