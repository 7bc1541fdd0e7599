// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.nio.IntBuffer;

/// How much each input pixel counts for each output pixel, along one axis. A filter is widened by the
/// scale when a picture shrinks, so that no input pixel is passed over. All is computed as
/// Pillow does it, so that results are the same, bit for bit.
final class FilterTaps {
  /// The bits of a weight behind the point: 8 bits of a pixel and 2 for sums beyond it are left.
  static final int FRACTION_BITS = 32 - 8 - 2;

  /// The first input pixel that counts for an output pixel.
  final int[] first;

  /// The input pixel after the last one that counts.
  final int[] end;

  /// Those of output pixel `i` from `i * most` on, as fixed-point numbers.
  final int[] weights;

  /// The weights that each output pixel has room for.
  final int most;

  /// The most input pixels that count for an output pixel.
  private int used;

  private FilterTaps(int count, int most) {
    this.most = most;
    first = new int[count];
    end = new int[count];
    weights = new int[Math.multiplyExact(count, most)];
  }

  /// @param count how many output pixels are wanted
  static FilterTaps of(Kernel kernel, Sampling.Span span, int count) {
    double scale = (span.to() - span.from()) / span.whole();
    double widened = Math.max(1, scale);
    double support = kernel.support() * widened;
    int most = (int) Math.ceil(support) * 2 + 1;
    FilterTaps all = new FilterTaps(count, most);
    double[] shares = new double[most];
    for (int i = 0; i < count; i++) {
      double center = span.from() + (span.start() + i + 0.5) * scale;
      int first = Math.max(0, (int) (center - support + 0.5));
      int taps = Math.min(span.count(), (int) (center + support + 0.5)) - first;
      all.first[i] = first;
      all.end[i] = first + taps;
      all.used = Math.max(all.used, taps);
      double sum = 0;
      for (int t = 0; t < taps; t++) {
        double distance = (t + first - center + 0.5) * (1 / widened);
        shares[t] = kernel.at(Math.abs(distance));
        sum += shares[t];
      }
      for (int t = 0; t < taps; t++) {
        double share = (sum == 0 ? shares[t] : shares[t] / sum) * (1 << FRACTION_BITS);
        all.weights[i * most + t] = (int) (share < 0 ? share - 0.5 : share + 0.5);
      }
    }
    return all;
  }

  /// How much an input pixel counts for an output pixel; 0 if it does not.
  int weight(int output, int input) {
    return input < first[output] || input >= end[output]
        ? 0
        : weights[output * most + input - first[output]];
  }

  int used() {
    return used;
  }

  /// How many ints [#putPlaces] and [#putWeights] write together.
  int tableInts() {
    return first.length * 2 + weights.length;
  }

  /// Writes for each output pixel the first input pixel that counts, then how many count.
  ///
  /// @param offset is added to the numbers of input pixels
  void putPlaces(int offset, IntBuffer table) {
    for (int pixel : first) {
      table.put(offset + pixel);
    }
    for (int i = 0; i < first.length; i++) {
      table.put(end[i] - first[i]);
    }
  }

  void putWeights(IntBuffer table) {
    table.put(weights);
  }
}
