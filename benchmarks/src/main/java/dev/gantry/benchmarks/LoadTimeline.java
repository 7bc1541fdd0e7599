// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.TransferReport;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/// Shows where the time of a load goes, by the flight recorder's events of its reads, waits and copies.
final class LoadTimeline {
  private static final String CALL = "dev.gantry.benchmarks.Call";
  private static final String EVENTS = "dev.gantry.";
  private static final List<String> SPANS = List.of("Load", "Read", "Copy", "Wait");

  /// A call that loads, until it returned.
  @Name(CALL)
  static final class Call extends Event {}

  private LoadTimeline() {}

  /// Runs some loads under the flight recorder and prints a line for each.
  ///
  /// @param load loads, and returns what it loaded
  /// @param report of that
  /// @param close gives it back
  static <T> void print(
      String label, int loads, Supplier<T> load, Report<T> report, Close<T> close) {
    List<Duration> reading = new ArrayList<>();
    List<Duration> closing = new ArrayList<>();
    List<RecordedEvent> events;
    try {
      Path file = Files.createTempFile("gantry", ".jfr");
      try (Recording recording = new Recording()) {
        recording.enable(CALL).withoutThreshold().withoutStackTrace();
        SPANS.forEach(span -> recording.enable(EVENTS + span).withoutThreshold());
        recording.start();
        // The first one initialises the events.
        for (int i = -1; i < loads; i++) {
          Call call = new Call();
          call.begin();
          T loaded = load.get();
          call.commit();
          long returned = System.nanoTime();
          close.close(loaded);
          closing.add(Duration.ofNanos(System.nanoTime() - returned));
          reading.add(report.of(loaded).elapsed());
        }
        recording.stop();
        recording.dump(file);
        events = RecordingFile.readAllEvents(file);
      } finally {
        Files.delete(file);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    List<RecordedEvent> calls =
        named(events, CALL).stream()
            .sorted(Comparator.comparing(RecordedEvent::getStartTime))
            .toList();
    for (int i = 1; i < calls.size(); i++) {
      System.out.println(
          line(label, calls.get(i), events, millis(reading.get(i)), millis(closing.get(i))));
    }
  }

  /// What a load reported.
  @FunctionalInterface
  interface Report<T> {
    TransferReport of(T loaded);
  }

  /// Frees what was loaded.
  @FunctionalInterface
  interface Close<T> {
    void close(T loaded);
  }

  private static String line(
      String label, RecordedEvent call, List<RecordedEvent> all, double reading, double closing) {
    Instant start = call.getStartTime();
    List<RecordedEvent> own =
        all.stream()
            .filter(event ->
                !event.getStartTime().isBefore(start)
                    && !event.getStartTime().isAfter(call.getEndTime()))
            .toList();
    RecordedEvent load = named(own, EVENTS + "Load").getFirst();
    List<RecordedEvent> reads = named(own, EVENTS + "Read");
    List<RecordedEvent> copies = named(own, EVENTS + "Copy");
    List<RecordedEvent> waits = named(own, EVENTS + "Wait");
    Map<Long, Instant> firstReads =
        reads.stream()
            .collect(
                Collectors.toMap(
                    LoadTimeline::thread,
                    RecordedEvent::getStartTime,
                    (one, other) -> one.isBefore(other) ? one : other));
    double[] took =
        reads.stream().mapToDouble(event -> millis(event.getDuration())).sorted().toArray();
    int threads = firstReads.size();
    double firstRead =
        firstReads.values().stream().mapToDouble(at -> since(start, at)).min().orElse(-1);
    return String.format(
        Locale.ROOT,
        "timeline\t%s, ms: planned %.1f, memory there %.1f, first read begins %.1f (the last"
            + " thread's %.1f), first copy queued %.1f, a thread's last read ends %.1f to %.1f,"
            + " last copy seen done %.1f, load ends %.1f, returned %.1f, closed %.1f later; each of"
            + " %d threads: %.1f reading, %.1f waiting; reads %.2f (fastest %.2f, slowest %.2f)",
        label,
        since(start, load.getStartTime()),
        // The load's end is somewhat later than that of its reading.
        Math.min(firstRead, since(start, load.getEndTime()) - reading),
        firstRead,
        firstReads.values().stream().mapToDouble(at -> since(start, at)).max().orElse(-1),
        copies.stream().mapToDouble(each -> since(start, each.getStartTime())).min().orElse(-1),
        lastReads(reads, start).stream().mapToDouble(Double::doubleValue).min().orElse(-1),
        lastReads(reads, start).stream().mapToDouble(Double::doubleValue).max().orElse(-1),
        copies.stream().mapToDouble(each -> since(start, each.getEndTime())).max().orElse(-1),
        since(start, load.getEndTime()),
        since(start, call.getEndTime()),
        closing,
        threads,
        sum(reads) / Math.max(1, threads),
        sum(waits) / Math.max(1, threads),
        took.length == 0 ? -1 : took[took.length / 2],
        took.length == 0 ? -1 : took[0],
        took.length == 0 ? -1 : took[took.length - 1]);
  }

  /// The time at which each thread's last read ended.
  private static List<Double> lastReads(List<RecordedEvent> reads, Instant start) {
    return List.copyOf(
        reads.stream()
            .collect(
                Collectors.toMap(
                    LoadTimeline::thread, read -> since(start, read.getEndTime()), Math::max))
            .values());
  }

  private static long thread(RecordedEvent event) {
    return event.getThread() == null ? -1 : event.getThread().getJavaThreadId();
  }

  private static List<RecordedEvent> named(List<RecordedEvent> events, String name) {
    return events.stream().filter(event -> event.getEventType().getName().equals(name)).toList();
  }

  private static double sum(List<RecordedEvent> events) {
    return events.stream().mapToDouble(event -> millis(event.getDuration())).sum();
  }

  private static double since(Instant start, Instant at) {
    return millis(Duration.between(start, at));
  }

  private static double millis(Duration time) {
    return time.toNanos() / 1e6;
  }
}
