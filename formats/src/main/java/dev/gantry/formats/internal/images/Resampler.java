// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static dev.gantry.formats.internal.images.FilterTaps.FRACTION_BITS;
import static dev.gantry.formats.internal.images.Pixels.CHANNELS;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/// Resizes a part of a picture to rows of RGB of 8 bits: along rows first, then along columns, rounding to
/// 8 bits in between. Each input row is read once and added to the output rows that it counts for, so that
/// memory depends on the output's size only.
final class Resampler {
  private static final int HALF = 1 << (FRACTION_BITS - 1);

  private final int width;
  private final int height;
  private final Kernel kernel;
  private final int[] sums;
  private final int[] line;
  private final byte[] bytes;

  /// @param width of the output
  /// @param height of the output
  Resampler(int width, int height, Kernel kernel) {
    this.width = width;
    this.height = height;
    this.kernel = kernel;
    sums = new int[Math.multiplyExact(Math.multiplyExact(width, height), CHANNELS)];
    line = new int[width * CHANNELS];
    bytes = new byte[width * CHANNELS];
  }

  /// @param reduction how many times smaller the pixels are than the picture that the sampling speaks of
  /// @param target gets the output, row after row
  void run(Pixels pixels, Sampling sampling, int reduction, MemorySegment target) {
    Sampling.Region region = sampling.region();
    int x = region.x() / reduction;
    int y = region.y() / reduction;
    int right = Math.min(pixels.width(), Math.ceilDiv(region.x() + region.width(), reduction));
    int bottom = Math.min(pixels.height(), Math.ceilDiv(region.y() + region.height(), reduction));
    FilterTaps columns =
        FilterTaps.of(
            kernel,
            (double) region.x() / reduction - x,
            (double) (region.x() + region.width()) / reduction - x,
            right - x,
            sampling.width(),
            sampling.left(),
            width);
    FilterTaps rows =
        FilterTaps.of(
            kernel,
            (double) region.y() / reduction - y,
            (double) (region.y() + region.height()) / reduction - y,
            bottom - y,
            sampling.height(),
            sampling.top(),
            height);
    byte[] input = new byte[(right - x) * CHANNELS];
    Arrays.fill(sums, HALF);
    int next = 0;
    for (int row = rows.first[0]; row < rows.end[height - 1]; row++) {
      pixels.rows().read(y + row, x, right - x, input);
      resizeLine(input, columns);
      for (int out = next; out < height && rows.first[out] <= row; out++) {
        if (row < rows.end[out]) {
          add(rows.weights[out * rows.most + row - rows.first[out]], out);
        }
        if (row + 1 >= rows.end[out] && out == next) {
          next++;
        }
      }
    }
    for (int out = 0; out < height; out++) {
      write(out, sampling.mirrored(), target);
    }
  }

  private void resizeLine(byte[] input, FilterTaps columns) {
    int[] weights = columns.weights;
    for (int out = 0; out < width; out++) {
      int red = HALF;
      int green = HALF;
      int blue = HALF;
      int at = columns.first[out] * CHANNELS;
      int from = out * columns.most;
      int to = from + columns.end[out] - columns.first[out];
      for (int tap = from; tap < to; tap++, at += CHANNELS) {
        int weight = weights[tap];
        red += (input[at] & 0xFF) * weight;
        green += (input[at + 1] & 0xFF) * weight;
        blue += (input[at + 2] & 0xFF) * weight;
      }
      line[out * CHANNELS] = clip(red);
      line[out * CHANNELS + 1] = clip(green);
      line[out * CHANNELS + 2] = clip(blue);
    }
  }

  /// The compiler turns this loop into vector instructions.
  private void add(int weight, int out) {
    int at = out * line.length;
    for (int i = 0; i < line.length; i++) {
      sums[at + i] += line[i] * weight;
    }
  }

  private static int clip(int sum) {
    return Math.clamp(sum >> FRACTION_BITS, 0, 255);
  }

  private void write(int out, boolean mirrored, MemorySegment target) {
    int at = out * line.length;
    for (int column = 0; column < width; column++) {
      int to = (mirrored ? width - 1 - column : column) * CHANNELS;
      for (int c = 0; c < CHANNELS; c++) {
        bytes[to + c] = (byte) clip(sums[at++]);
      }
    }
    MemorySegment.copy(
        bytes, 0, target, ValueLayout.JAVA_BYTE, (long) out * bytes.length, bytes.length);
  }
}
