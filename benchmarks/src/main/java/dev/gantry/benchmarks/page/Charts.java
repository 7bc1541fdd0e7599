// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.page;

import dev.gantry.benchmarks.result.Group;
import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Point;
import dev.gantry.benchmarks.result.Result;
import dev.gantry.benchmarks.result.Spread;
import dev.gantry.benchmarks.result.Trace;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// The charts of a result.
record Charts(Result result) {
  private static final String OURS = "Gantry";

  static String words(Heat heat) {
    return switch (heat) {
      case HOT -> "page cache hot";
      case COLD -> "cold, from the disk";
      case NONE -> "";
    };
  }

  /// Returns a chart for each file and page cache state, by its title. The bars are the ceiling,
  /// then Gantry, then the peers; contenders of a kind stand from the fastest to the slowest.
  Map<String, Chart> loads() {
    Map<String, Chart> charts = new LinkedHashMap<>();
    for (Point first : result.points(Group.LOAD)) {
      charts.computeIfAbsent(title(first), this::loads);
    }
    return charts;
  }

  private static String title(Point point) {
    return point.what() + ", " + words(point.heat());
  }

  private Chart loads(String title) {
    List<Point> points =
        result.points(Group.LOAD).stream()
            .filter(point -> title(point).equals(title))
            .sorted(
                Comparator.comparing((Point point) -> !isOurs(point))
                    .thenComparing(Comparator.comparingDouble(Point::median).reversed()))
            .toList();
    Optional<Point> ceiling = result.ceiling(points.getFirst());
    return new Chart.Bars(
        "Loads of " + title + ", in GB/s",
        "GB/s; behind it, the share of the ceiling",
        ceiling.map(Point::median).orElse(0.0),
        Stream.concat(ceiling.stream(), points.stream()).map(this::bar).toList());
  }

  /// Returns a chart with one bar for each name in a group. A ceiling that was also measured in
  /// turns with loads appears once, as it was measured first.
  Chart group(Group group) {
    Map<String, Chart.Bar> bars = new LinkedHashMap<>();
    result.points(group).forEach(point -> bars.putIfAbsent(point.name(), bar(point)));
    return new Chart.Bars(group.title() + ", in GB/s", "GB/s", 0, List.copyOf(bars.values()));
  }

  static Chart stages(Trace trace) {
    List<Chart.Bar> bars =
        trace.stages().stream()
            .map(stage ->
                new Chart.Bar(
                    stage.name(),
                    stage.name().startsWith("read") ? Chart.OURS : Chart.CEILING,
                    Spread.of(List.of(stage.millis())),
                    millis(stage.millis())))
            .toList();
    return new Chart.Bars("Where the time of a load goes, in ms", "ms", 0, bars);
  }

  private static String millis(double millis) {
    return String.format(Locale.ROOT, millis < 10 ? "%.2f ms" : "%.1f ms", millis);
  }

  static Chart timeline(Trace trace) {
    List<Chart.Box> boxes =
        trace.spans().stream()
            .map(span -> new Chart.Box(row(span), color(span), span.from(), span.to()))
            // Waits are drawn below the activities of the same time.
            .sorted(Comparator.comparing(box -> box.color().equals(Chart.WAIT)))
            .toList();
    List<String> rows = boxes.stream().map(Chart.Box::row).distinct().sorted().toList();
    return new Chart.Timeline("Reads, copies and waits of one load, by thread", rows, boxes);
  }

  /// A device copies while the thread that queued the copy continues to read, so copies get a row
  /// of their own.
  private static String row(Trace.Span span) {
    return color(span).equals(Chart.COPY) ? span.thread() + ", copies" : span.thread();
  }

  /// Describes how the threads divided their time among activities, from the first span's start to
  /// the last span's end.
  static String shares(Trace trace) {
    List<Trace.Span> spans =
        trace.spans().stream().filter(span -> !color(span).equals(Chart.COPY)).toList();
    long threads = spans.stream().map(Trace.Span::thread).distinct().count();
    double begin = trace.spans().stream().mapToDouble(Trace.Span::from).min().orElse(0);
    double end = trace.spans().stream().mapToDouble(Trace.Span::to).max().orElse(0);
    double all = Math.max(threads * (end - begin), Double.MIN_NORMAL);
    Map<String, Double> shares =
        spans.stream()
            .collect(
                Collectors.groupingBy(
                    Trace.Span::kind,
                    TreeMap::new,
                    Collectors.summingDouble(span -> 100 * (span.to() - span.from()) / all)));
    return String.format(
        Locale.ROOT,
        "%d threads, %s from the first read to the end: %s of their time.",
        threads,
        millis(end - begin),
        shares.entrySet().stream()
            .map(kind ->
                String.format(
                    Locale.ROOT,
                    "%s %.0f %%",
                    kind.getKey().toLowerCase(Locale.ROOT),
                    kind.getValue()))
            .collect(Collectors.joining(", ")));
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

  private Chart.Bar bar(Point point) {
    OptionalDouble ratio = result.ratio(point);
    return new Chart.Bar(
        point.name(),
        point.group() == Group.CEILING ? Chart.CEILING : isOurs(point) ? Chart.OURS : Chart.PEER,
        point.spread(),
        Spread.rate(point.median())
            + (ratio.isPresent()
                ? String.format(Locale.ROOT, "  (%.2f)", ratio.getAsDouble())
                : ""));
  }
}
