// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.bench;

import dev.gantry.benchmarks.result.Heat;
import dev.gantry.benchmarks.result.Trace;
import dev.gantry.core.Device;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

/// One load under the flight recorder: what each thread did, and where the time went.
final class LoadTrace {
  private static final String EVENTS = "dev.gantry.";
  private static final String LOAD = EVENTS + "Load";
  private static final List<String> SPANS = List.of("Read", "Copy", "Wait");

  /// The most spans of a trace; a picture would show no more.
  private static final int MAX_SPANS = 4000;

  private LoadTrace() {}

  /// @param folder for the recording
  static Trace record(GantrySession session, Subject subject, Device device, Path folder)
      throws IOException {
    Path file = folder.resolve("load.jfr");
    List<Trace.Stage> stages = new ArrayList<>();
    try (Recording recording = new Recording()) {
      recording.enable(LOAD).withoutThreshold();
      SPANS.forEach(span -> recording.enable(EVENTS + span).withoutThreshold());
      recording.start();
      // The first load initialises the events.
      load(session, subject, device, new ArrayList<>());
      load(session, subject, device, stages);
      recording.stop();
      recording.dump(file);
    }
    List<Trace.Span> spans = spans(RecordingFile.readAllEvents(file));
    return new Trace(
        subject.what(),
        Heat.HOT,
        subject.bytes(),
        stages,
        spans,
        spans.isEmpty() ? "the flight recorder has no reads of this load" : "");
  }

  private static void load(
      GantrySession session, Subject subject, Device device, List<Trace.Stage> stages) {
    long begin = System.nanoTime();
    List<ExtentRequest> wanted = GantryLoad.wanted(subject.file());
    long header = System.nanoTime();
    var _ = Planner.plan(wanted, PlanLimits.DEFAULT);
    // The load plans again; so this time is taken from it.
    long plan = System.nanoTime() - header;
    long start = System.nanoTime();
    Loaded loaded = session.load(wanted, device, TransferOptions.defaults());
    long done = System.nanoTime();
    long reading = loaded.report().elapsed().toNanos();
    loaded.close();
    long released = System.nanoTime();
    stage(stages, "open the file and read its header", header - begin);
    stage(stages, "plan the reads", plan);
    stage(stages, "open, allocate memory, start readers", done - start - plan - reading);
    stage(stages, "read, until the last byte is there", reading);
    stage(stages, "release the memory (after the load)", released - done);
  }

  private static void stage(List<Trace.Stage> stages, String name, long nanos) {
    stages.add(new Trace.Stage(name, Math.max(0, nanos) / 1e6));
  }

  /// Gives the spans of the last load, from its start on.
  private static List<Trace.Span> spans(List<RecordedEvent> events) {
    Instant start =
        events.stream()
            .filter(event -> event.getEventType().getName().equals(LOAD))
            .map(RecordedEvent::getStartTime)
            .max(Comparator.naturalOrder())
            .orElse(Instant.MAX);
    return events.stream()
        .filter(event -> !event.getEventType().getName().equals(LOAD))
        .filter(event -> !event.getStartTime().isBefore(start))
        .sorted(Comparator.comparing(RecordedEvent::getStartTime))
        .limit(MAX_SPANS)
        .map(event -> span(event, start))
        .toList();
  }

  private static Trace.Span span(RecordedEvent event, Instant start) {
    double from = Duration.between(start, event.getStartTime()).toNanos() / 1e6;
    double took = event.getDuration().toNanos() / 1e6;
    return new Trace.Span(
        // Threads are used again, and a flight recorder may have the name of an earlier job.
        event.getThread() == null ? "device" : "thread " + event.getThread().getJavaThreadId(),
        event.getEventType().getName().substring(EVENTS.length()),
        from,
        from + took);
  }
}
