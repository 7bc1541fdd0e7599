// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import jdk.jfr.Recording;
import jdk.jfr.consumer.RecordedEvent;
import jdk.jfr.consumer.RecordingFile;

final class Recorded {
  private final List<RecordedEvent> events;

  private Recorded(List<RecordedEvent> events) {
    this.events = events;
  }

  /// Records all events of Gantry during `work`, even the shortest.
  static Recorded during(Path folder, Runnable work) {
    return during(folder, true, work);
  }

  /// Records the events of Gantry that a recording without settings has.
  static Recorded byDefault(Path folder, Runnable work) {
    return during(folder, false, work);
  }

  private static Recorded during(Path folder, boolean all, Runnable work) {
    try (Recording recording = new Recording()) {
      if (all) {
        for (String name : List.of("Load", "Read", "Copy", "Wait", "Save", "Commit")) {
          recording.enable("dev.gantry." + name).withThreshold(Duration.ZERO);
        }
        recording.enable("dev.gantry.Fallback");
        recording.enable("dev.gantry.Registration");
      }
      recording.start();
      work.run();
      recording.stop();
      Path file = folder.resolve("recording.jfr");
      recording.dump(file);
      return new Recorded(
          RecordingFile.readAllEvents(file).stream()
              .filter(event -> event.getEventType().getName().startsWith("dev.gantry."))
              .sorted(Comparator.comparing(RecordedEvent::getEndTime))
              .toList());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /// Returns the events of one kind, in the order of their ends.
  List<RecordedEvent> of(String name) {
    return events.stream()
        .filter(event -> event.getEventType().getName().equals("dev.gantry." + name))
        .toList();
  }
}
