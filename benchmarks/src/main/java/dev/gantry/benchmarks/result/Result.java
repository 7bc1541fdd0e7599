// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/// All findings of a bench.
public record Result(
    Run run, Machine machine, List<Point> points, List<Absence> absences, Trace trace) {
  public Result {
    points = List.copyOf(points);
    absences = List.copyOf(absences);
  }

  public List<Point> points(Group group) {
    return points.stream().filter(point -> point.group() == group).toList();
  }

  /// Returns the ceiling to compare a point with. A ceiling that was measured in turns with the
  /// point comes before a ceiling that was measured alone.
  public Optional<Point> ceiling(Point point) {
    return points(Group.CEILING).stream()
        .filter(ceiling -> ceiling.name().equals(point.ceiling()))
        .max(
            Comparator.comparing((Point ceiling) -> ceiling.what().equals(point.what()))
                // A ceiling that was measured twice counts as it was measured last.
                .thenComparingInt(points::lastIndexOf));
  }

  /// Returns a point's median divided by the median of its ceiling.
  public OptionalDouble ratio(Point point) {
    return ceiling(point)
        .map(ceiling -> OptionalDouble.of(point.median() / ceiling.median()))
        .orElse(OptionalDouble.empty());
  }
}
