// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/// All that a bench found.
public record Result(
    Run run, Machine machine, List<Point> points, List<Absence> absences, Trace trace) {
  public Result {
    points = List.copyOf(points);
    absences = List.copyOf(absences);
  }

  public List<Point> points(Group group) {
    return points.stream().filter(point -> point.group() == group).toList();
  }

  /// The ceiling that a point is compared with: the one that took turns with it, if there is one.
  public Optional<Point> ceiling(Point point) {
    return points(Group.CEILING).stream()
        .filter(ceiling -> ceiling.name().equals(point.ceiling()))
        .max(
            Comparator.comparing((Point ceiling) -> ceiling.what().equals(point.what()))
                // The later one counts of those that ran alone and in turns.
                .thenComparingInt(points::lastIndexOf));
  }

  /// A point's median as a share of its ceiling's.
  public OptionalDouble ratio(Point point) {
    return ceiling(point)
        .map(ceiling -> OptionalDouble.of(point.median() / ceiling.median()))
        .orElse(OptionalDouble.empty());
  }
}
