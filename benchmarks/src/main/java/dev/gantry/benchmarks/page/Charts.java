// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Spread;
import dev.gantry.benchmarks.result.Trace;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Collectors;

/// The charts of a result.
final class Charts {
  private static final String OURS = "Gantry";

  private Charts() {}

  /// What was loaded from where: one chart each.
  record LoadKey(String what, Heat heat) {}

  static List<LoadKey> loadKeys(Result result) {
    return result.points(Group.LOAD).stream()
        .map(point -> new LoadKey(point.what(), point.heat()))
        .distinct()
        .toList();
  }

  /// The ceiling first, then ours, then peers, the fastest first.
  static Chart loads(Result result, LoadKey key) {
    List<Point> points =
        result.points(Group.LOAD).stream()
            .filter(point -> point.what().equals(key.what()) && point.heat() == key.heat())
            .sorted(
                Comparator.comparing((Point point) -> !isOurs(point))
                    .thenComparing(Comparator.comparingDouble(Point::median).reversed()))
            .toList();
    List<Chart.Bar> bars = new ArrayList<>();
    Optional<Point> ceiling = points.stream().findFirst().flatMap(result::ceiling);
    ceiling.ifPresent(point -> bars.add(bar(point, OptionalDouble.empty())));
    points.forEach(point -> bars.add(bar(point, result.ratio(point))));
    return new Chart.Bars(
        "Loads of " + key.what() + ", " + key.heat() + ", in GB/s",
        "GB/s; behind it, the share of the ceiling",
        ceiling.map(Point::median).orElse(0.0),
        bars);
  }

  /// One bar for each point of a group.
  static Chart group(Result result, Group group) {
    return new Chart.Bars(
        group.title() + ", in GB/s",
        "GB/s",
        0,
        result.points(group).stream().map(point -> bar(point, result.ratio(point))).toList());
  }

  /// The ceilings by themselves, not those that took turns with loads.
  static Chart ceilings(Result result) {
    List<Chart.Bar> bars = new ArrayList<>();
    List<String> seen = new ArrayList<>();
    for (Point point : result.points(Group.CEILING)) {
      if (!seen.contains(point.name())) {
        seen.add(point.name());
        bars.add(bar(point, OptionalDouble.empty()));
      }
    }
    return new Chart.Bars("Ceilings, in GB/s", "GB/s", 0, bars);
  }

  static Chart stages(Trace trace) {
    List<Chart.Bar> bars =
        trace.stages().stream()
            .map(stage ->
                new Chart.Bar(
                    stage.name(),
                    stage.name().startsWith("read") ? Chart.OURS : Chart.CEILING,
                    new Spread(stage.millis(), stage.millis(), stage.millis()),
                    millis(stage.millis())))
            .toList();
    return new Chart.Bars("Where the time of a load goes, in ms", "ms", 0, bars);
  }

  static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 10 ? "%.2f ms" : "%.1f ms", millis);
  }

  static Chart timeline(Trace trace) {
    List<Chart.Box> boxes =
        trace.spans().stream()
            .map(span -> new Chart.Box(row(span), color(span), span.from(), span.to()))
            // Waits lie below what goes on meanwhile.
            .sorted(Comparator.comparing(box -> box.color().equals(Chart.WAIT)))
            .toList();
    List<String> rows = boxes.stream().map(Chart.Box::row).distinct().sorted().toList();
    return new Chart.Timeline("Reads, copies and waits of one load, by thread", rows, boxes);
  }

  /// A device copies while the thread that queued the copy reads on.
  private static String row(Trace.Span span) {
    return color(span).equals(Chart.COPY) ? span.thread() + ", copies" : span.thread();
  }

  /// Says which part of their time threads spent with what, from their first span to the last one's end.
  static String shares(Trace trace) {
    Map<String, List<Trace.Span>> threads =
        trace.spans().stream()
            .filter(span -> !color(span).equals(Chart.COPY))
            .collect(Collectors.groupingBy(Trace.Span::thread));
    double begin = trace.spans().stream().mapToDouble(Trace.Span::from).min().orElse(0);
    double end = trace.spans().stream().mapToDouble(Trace.Span::to).max().orElse(0);
    Map<String, Double> millis =
        threads.values().stream()
            .flatMap(List::stream)
            .collect(
                Collectors.groupingBy(
                    Trace.Span::kind,
                    TreeMap::new,
                    Collectors.summingDouble(span -> span.to() - span.from())));
    double all = Math.max(threads.size() * (end - begin), Double.MIN_NORMAL);
    return String.format(
            Locale.ROOT,
            "%d threads, %s from the first read to the end: ",
            threads.size(),
            millis(end - begin))
        + millis.entrySet().stream()
            .map(kind ->
                String.format(
                    Locale.ROOT,
                    "%s %.0f %%",
                    kind.getKey().toLowerCase(Locale.ROOT),
                    100 * kind.getValue() / all))
            .collect(Collectors.joining(", "))
        + " of their time.";
  }

  private static String color(Trace.Span span) {
    return switch (span.kind()) {
      case "Read" -> Chart.OURS;
      case "Copy" -> Chart.COPY;
      case "Wait" -> Chart.WAIT;
      default -> Chart.PEER;
    };
  }

  private static boolean isOurs(Point point) {
    return point.name().startsWith(OURS);
  }

  private static Chart.Bar bar(Point point, OptionalDouble ratio) {
    String color =
        point.group() == Group.CEILING ? Chart.CEILING : isOurs(point) ? Chart.OURS : Chart.PEER;
    String figure = Spread.rate(point.median());
    return new Chart.Bar(
        point.name(),
        color,
        point.spread(),
        ratio.isPresent()
            ? figure + String.format(Locale.ROOT, "  (%.2f)", ratio.getAsDouble())
            : figure);
  }
}
