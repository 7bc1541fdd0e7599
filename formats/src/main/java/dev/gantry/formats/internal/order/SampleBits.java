// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.LongConsumer;

/// Some of a dataset's samples, as one bit for each sample. Immutable.
public final class SampleBits {
  /// The most samples of a dataset of which some are chosen: their bits take 1 GiB.
  static final long MAX_SAMPLES = 1L << 33;

  /// The most that the numbers of a ratio sum up to.
  static final long MAX_RATIO = 1 << 20;

  private static final int BLOCK_WORDS = 8;

  /// The purpose of the random numbers that split a dataset.
  private static final long SPLIT = 5;

  private static final int NUMBERS_AT_ONCE = 1024;

  private final long[] words;

  /// How many samples are chosen before each block of words, and how many altogether.
  private final long[] before;

  private SampleBits(long[] words) {
    this.words = words;
    before = new long[Math.ceilDiv(words.length, BLOCK_WORDS) + 1];
    for (int i = 0; i < words.length; i++) {
      before[i / BLOCK_WORDS + 1] += Long.bitCount(words[i]);
    }
    Arrays.parallelPrefix(before, Long::sum);
  }

  /// Chooses all samples.
  ///
  /// @throws MisuseException if they are too many
  public static SampleBits all(long samples) {
    long[] words = words(samples);
    Arrays.fill(words, -1);
    if (samples % Long.SIZE != 0) {
      words[words.length - 1] = -1L >>> -samples;
    }
    return new SampleBits(words);
  }

  private static long[] words(long samples) {
    if (samples > MAX_SAMPLES) {
      throw new MisuseException(
          "some of " + samples + " samples cannot be chosen, only of up to " + MAX_SAMPLES);
    }
    return new long[(int) Math.ceilDiv(samples, (long) Long.SIZE)];
  }

  /// Chooses the samples whose numbers are given to the consumer, in any order.
  ///
  /// @param samples how many there are
  /// @throws MisuseException if they are too many, or a number is not one of a sample
  public static SampleBits of(long samples, Consumer<LongConsumer> numbers) {
    long[] words = words(samples);
    numbers.accept(number -> {
      if (number < 0 || number >= samples) {
        throw new MisuseException("there is no sample " + number + " among " + samples);
      }
      words[(int) (number / Long.SIZE)] |= 1L << number;
    });
    return new SampleBits(words);
  }

  /// Chooses one of the parts into which all samples fall at random. The parts of one seed and ratio have no
  /// sample in common, and together have all samples.
  ///
  /// @param part the part's number, from 0
  /// @param ratio the sizes of the parts in relation to each other, each 1 or more
  public static SampleBits part(long samples, long seed, int part, List<Integer> ratio) {
    long all = ratio.stream().mapToLong(Integer::longValue).sum();
    MisuseException.requireRange("sum of a ratio", all, 1, MAX_RATIO);
    long start = ratio.subList(0, part).stream().mapToLong(Integer::longValue).sum();
    return of(
        samples,
        chosen -> {
          // The product is at most 2^53.
          long end = samples * (start + ratio.get(part)) / all;
          Permutation order = Permutation.of(samples, Mix.key(seed, 0, SPLIT));
          for (long at = samples * start / all; at < end; at += NUMBERS_AT_ONCE) {
            long[] numbers = new long[(int) Math.min(NUMBERS_AT_ONCE, end - at)];
            order.fill(at, numbers);
            for (long number : numbers) {
              chosen.accept(number);
            }
          }
        });
  }

  /// How many samples are chosen.
  public long count() {
    return before[before.length - 1];
  }

  /// How many samples are chosen of those below `number`.
  public long countBelow(long number) {
    int word = (int) (number / Long.SIZE);
    long count = before[word / BLOCK_WORDS];
    for (int i = word - word % BLOCK_WORDS; i < word; i++) {
      count += Long.bitCount(words[i]);
    }
    int bits = (int) (number % Long.SIZE);
    return bits == 0 ? count : count + Long.bitCount(words[word] << -bits);
  }

  /// The number of a chosen sample.
  ///
  /// @param index how many chosen samples come before it
  public long number(long index) {
    Objects.checkIndex(index, count());
    int low = 0;
    int high = before.length - 2;
    while (low < high) {
      int middle = (low + high + 1) >>> 1;
      if (before[middle] <= index) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    long left = index - before[low];
    int word = low * BLOCK_WORDS;
    for (int bits = Long.bitCount(words[word]); bits <= left; bits = Long.bitCount(words[word])) {
      left -= bits;
      word++;
    }
    // The bit of this number among those of the word that are set.
    long bit = Long.expand(1L << left, words[word]);
    return (long) word * Long.SIZE + Long.numberOfTrailingZeros(bit);
  }

  /// The number of the first chosen sample from `number` on; there must be one.
  public long next(long number) {
    int word = (int) (number / Long.SIZE);
    long bits = words[word] & (-1L << number);
    while (bits == 0) {
      word++;
      bits = words[word];
    }
    return (long) word * Long.SIZE + Long.numberOfTrailingZeros(bits);
  }

  /// A text that differs for other samples.
  public String identity() {
    MessageDigest digest = OrderIdentity.sha256();
    ByteBuffer word = ByteBuffer.allocate(Long.BYTES);
    for (long bits : words) {
      digest.update(word.putLong(0, bits).rewind());
    }
    return HexFormat.of().formatHex(digest.digest());
  }
}
