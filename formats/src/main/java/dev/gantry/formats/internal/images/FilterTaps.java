// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.nio.IntBuffer;

/// The weights of input pixels for each output pixel, along one axis. If a picture shrinks, the
/// filter is widened by the scale, so that every input pixel counts. The weights are computed as
/// Pillow computes them, so that results are equal to the bit.
final class FilterTaps {
  /// The fractional bits of a weight. An `int` also needs 8 bits for a pixel's value and 2 bits
  /// for sums that exceed it.
  static final int FRACTION_BITS = 32 - 8 - 2;

  /// The first input pixel that counts for an output pixel.
  final int[] first;

  /// The input pixel after the last one that counts.
  final int[] end;

  /// The weights as fixed-point numbers; the weights of output pixel `i` begin at index `i *
  /// most`.
  final int[] weights;

  /// The number of weights that are stored for each output pixel.
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

  /// Returns the weight of an input pixel for an output pixel; 0 if it does not count.
  int weight(int output, int input) {
    return input < first[output] || input >= end[output]
        ? 0
        : weights[output * most + input - first[output]];
  }

  int used() {
    return used;
  }

  /// The number of ints that [#putPlaces] and [#putWeights] write together.
  int tableInts() {
    return first.length * 2 + weights.length;
  }

  /// Writes the index of the first counting input pixel for every output pixel, and then the
  /// number of counting pixels for every output pixel.
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
