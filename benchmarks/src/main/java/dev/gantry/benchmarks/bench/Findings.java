// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.result.Absence;
import dev.gantry.benchmarks.result.Machine;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Run;
import dev.gantry.benchmarks.result.Trace;
import java.io.File;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Collects the results of a bench. Thread-safe, because the thread that ends the bench early
/// writes the results so far.
final class Findings {
  private final Settings settings;
  private final long begin = System.nanoTime();
  private final List<Point> points = new ArrayList<>();
  private final Set<Absence> absences = new LinkedHashSet<>();
  private final Set<String> failed = new HashSet<>();

  /// The parts that are not done yet, in their order.
  private final List<String> parts = new ArrayList<>();

  /// The points of the part that is being measured.
  private Supplier<List<Point>> current = List::of;

  private @Nullable Machine machine;

  Findings(Settings settings) {
    this.settings = settings;
  }

  synchronized void on(Machine measured) {
    machine = measured;
  }

  synchronized void plan(List<String> all) {
    parts.addAll(all);
  }

  /// @param measured returns the points of the part so far, at any time
  synchronized void begin(Supplier<List<Point>> measured) {
    current = measured;
  }

  /// Ends the current part.
  synchronized void done() {
    points.addAll(current.get());
    current = List::of;
    parts.removeFirst();
  }

  synchronized void add(Point point) {
    points.add(point);
  }

  synchronized void absent(String what, String reason) {
    absences.add(new Absence(what, withoutPaths(reason)));
  }

  /// Removes paths from a reason, since files differ from block to block and are named elsewhere.
  private String withoutPaths(String reason) {
    return reason.replaceAll(Pattern.quote(settings.folder() + File.separator) + "[^ :]*(: )?", "");
  }

  /// Records a failure. A contender that fails in several parts for the same reason is listed
  /// once, with the first part.
  synchronized void failed(String place, Absence failure) {
    if (failed.add(failure.what() + withoutPaths(failure.reason()))) {
      absent(failure.what() + ", first " + place, failure.reason());
    }
  }

  synchronized List<Point> points() {
    return List.copyOf(points);
  }

  /// Returns all that was found so far; empty if no point was measured.
  ///
  /// @param reason why the result is incomplete
  synchronized Optional<Result> soFar(String reason) {
    points.addAll(current.get());
    parts.forEach(part -> absent(part, reason));
    return points.isEmpty() ? Optional.empty() : Optional.of(result(Trace.none(reason)));
  }

  synchronized Result result(Trace trace) {
    int shortened =
        (int) points.stream().filter(point -> point.repeats().size() < settings.repeats()).count();
    return new Result(
        new Run(
            settings.version(),
            MachineProbe.commit(),
            settings.command(),
            Instant.now().truncatedTo(ChronoUnit.SECONDS),
            settings.device().toString(),
            settings.quick(),
            settings.repeats(),
            settings.budgetSeconds(),
            (System.nanoTime() - begin) / 1e9,
            shortened),
        Objects.requireNonNull(machine),
        points,
        List.copyOf(absences),
        trace);
  }
}
