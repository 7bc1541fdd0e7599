// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.bench.result;

import java.util.List;

/// The median of some numbers, and the least and the greatest of them.
public record Spread(double least, double median, double most) {
  /// @param numbers one or more
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
}
