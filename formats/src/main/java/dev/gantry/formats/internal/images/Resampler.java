// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static dev.gantry.formats.internal.images.FilterTaps.FRACTION_BITS;
import static dev.gantry.formats.internal.images.Pixels.CHANNELS;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/// Resizes a part of a picture to RGB rows of 8 bits. It resizes along rows first, rounds to 8
/// bits, and then resizes along columns. Each input row is read once and added to the output rows
/// to which it contributes, so that memory depends only on the output's size and on one input
/// row.
///
/// Input rows are processed in pairs. A pair has six values at each column; each of three longs
/// holds two of them, so that one multiplication serves both. Each value's sum stays within 32
/// bits.
final class Resampler {
  private static final int HALF = 1 << (FRACTION_BITS - 1);
  private static final long HALVES = ((long) HALF << Integer.SIZE) + HALF;

  private final int width;
  private final int height;
  private final Kernel kernel;
  private final int[] upper;
  private final int[] lower;
  private final byte[] bytes;

  /// The sums of the output rows that have begun. A row's index is its number modulo the most
  /// rows that are begun at once.
  private int[][] sums = {};

  /// @param width the output's width in pixels
  /// @param height the output's height in pixels
  Resampler(int width, int height, Kernel kernel) {
    this.width = width;
    this.height = height;
    this.kernel = kernel;
    upper = new int[width * CHANNELS];
    lower = new int[width * CHANNELS];
    bytes = new byte[width * CHANNELS];
  }

  /// @param reduction how many times smaller `pixels` is than the picture to which the sampling's
  ///     coordinates refer
  /// @param target receives the output, row after row
  void run(Pixels pixels, Sampling sampling, int reduction, MemorySegment target) {
    Sampling.Span across = sampling.across(reduction, pixels.width());
    Sampling.Span down = sampling.down(reduction, pixels.height());
    FilterTaps columns = FilterTaps.of(kernel, across, width);
    FilterTaps rows = FilterTaps.of(kernel, down, height);
    int x = across.first();
    int y = down.first();
    int count = across.count();
    byte[] first = new byte[count * CHANNELS];
    byte[] second = new byte[count * CHANNELS];
    // An output pixel with fewer taps has weights of 0 for the missing ones, but their pixels are
    // still read, so the array is longer.
    long[] pairs = new long[(count + columns.most) * CHANNELS];
    int slots = slots(rows);
    if (sums.length < slots) {
      sums = new int[slots][upper.length];
    }
    int begun = 0;
    int next = 0;
    int end = rows.end[height - 1];
    for (int row = rows.first[0]; row < end; row += 2) {
      pixels.rows().read(y + row, x, count, first);
      if (row + 1 < end) {
        pixels.rows().read(y + row + 1, x, count, second);
      }
      pair(first, second, pairs);
      resizeLines(pairs, columns, sampling.mirrored());
      while (begun < height && rows.first[begun] <= row + 1) {
        Arrays.fill(sums[begun++ % slots], HALF);
      }
      for (int out = next; out < begun; out++) {
        add(rows.weight(out, row), rows.weight(out, row + 1), sums[out % slots]);
      }
      for (; next < begun && rows.end[next] <= row + 2; next++) {
        write(sums[next % slots], next, target);
      }
    }
  }

  /// Returns the most output rows that are begun at once if input rows come in pairs.
  private static int slots(FilterTaps rows) {
    int most = 1;
    int begun = 0;
    for (int out = 0; out < rows.end.length; out++) {
      while (begun < rows.end.length && rows.first[begun] <= rows.end[out]) {
        begun++;
      }
      most = Math.max(most, begun - out);
    }
    return most;
  }

  private static void pair(byte[] first, byte[] second, long[] pairs) {
    for (int i = 0; i < first.length; i += CHANNELS) {
      pairs[i] = (first[i] & 0xFF) | (first[i + 1] & 0xFFL) << Integer.SIZE;
      pairs[i + 1] = (first[i + 2] & 0xFF) | (second[i] & 0xFFL) << Integer.SIZE;
      pairs[i + 2] = (second[i + 1] & 0xFF) | (second[i + 2] & 0xFFL) << Integer.SIZE;
    }
  }

  private void resizeLines(long[] pairs, FilterTaps columns, boolean mirrored) {
    int[] weights = columns.weights;
    int used = columns.used();
    for (int out = 0; out < width; out++) {
      int from = columns.first[out] * CHANNELS;
      int weightsFrom = out * columns.most;
      // Each kernel has at least three taps.
      long w0 = weights[weightsFrom];
      long w1 = weights[weightsFrom + 1];
      long w2 = weights[weightsFrom + 2];
      long one =
          HALVES + pairs[from] * w0 + pairs[from + CHANNELS] * w1 + pairs[from + 2 * CHANNELS] * w2;
      long two =
          HALVES
              + pairs[from + 1] * w0
              + pairs[from + CHANNELS + 1] * w1
              + pairs[from + 2 * CHANNELS + 1] * w2;
      long three =
          HALVES
              + pairs[from + 2] * w0
              + pairs[from + CHANNELS + 2] * w1
              + pairs[from + 2 * CHANNELS + 2] * w2;
      for (int tap = 3; tap < used; tap++) {
        long weight = weights[weightsFrom + tap];
        one += pairs[from + tap * CHANNELS] * weight;
        two += pairs[from + tap * CHANNELS + 1] * weight;
        three += pairs[from + tap * CHANNELS + 2] * weight;
      }
      int to = (mirrored ? width - 1 - out : out) * CHANNELS;
      upper[to] = (int) one;
      upper[to + 1] = high(one);
      upper[to + 2] = (int) two;
      lower[to] = high(two);
      lower[to + 1] = (int) three;
      lower[to + 2] = high(three);
    }
    clip(upper);
    clip(lower);
  }

  /// Returns the sum in the upper half. A negative sum in the lower half has borrowed 1 from the
  /// upper half.
  private static int high(long sums) {
    return (int) ((sums - (int) sums) >> Integer.SIZE);
  }

  /// The compiler turns this loop and the loop of [#clip] into vector instructions, because all
  /// arrays are read at the same index.
  private void add(int weight, int weightBelow, int[] row) {
    int[] above = upper;
    int[] below = lower;
    for (int i = 0; i < row.length; i++) {
      row[i] += above[i] * weight + below[i] * weightBelow;
    }
  }

  private static void clip(int[] row) {
    for (int i = 0; i < row.length; i++) {
      row[i] = Math.max(0, Math.min(255, row[i] >> FRACTION_BITS));
    }
  }

  private void write(int[] row, int out, MemorySegment target) {
    clip(row);
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) row[i];
    }
    MemorySegment.copy(
        bytes, 0, target, ValueLayout.JAVA_BYTE, (long) out * bytes.length, bytes.length);
  }
}
