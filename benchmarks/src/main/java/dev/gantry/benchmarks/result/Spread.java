// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.List;
import java.util.Locale;

/// The median of some numbers, and the least and the greatest number.
public record Spread(double least, double median, double most) {
  /// @param numbers one or more numbers
  public static Spread of(List<Double> numbers) {
    List<Double> sorted = numbers.stream().sorted().toList();
    if (sorted.isEmpty()) {
      throw new IllegalArgumentException("no numbers have no median");
    }
    int middle = sorted.size() / 2;
    double median =
        sorted.size() % 2 == 1
            ? sorted.get(middle)
            : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    return new Spread(sorted.getFirst(), median, sorted.getLast());
  }

  /// Formats a rate in GB/s with three significant digits.
  public static String rate(double rate) {
    return String.format(Locale.ROOT, rate < 1 ? "%.3f" : rate < 100 ? "%.2f" : "%.0f", rate);
  }
}
