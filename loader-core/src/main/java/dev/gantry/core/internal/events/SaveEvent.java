// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: files were written, until all are durable under their names.
public final class SaveEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Save")
  @Label("Save")
  @Category("Gantry")
  @Description("Files were written and got their names")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("First file")
    @Nullable String file;

    @Label("Files")
    long files;

    @Label("Written")
    @DataAmount
    long bytes;

    @Label("Written past the page cache")
    @DataAmount
    long directBytes;

    @Label("Requests")
    long writes;

    @Label("Failure")
    @Description("Empty if the files have their names")
    @Nullable String failure;
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// Ends the event, and writes it if it is recorded.
  ///
  /// @param first one of the files
  /// @param requests the writes that it took
  public void done(@Nullable Path first, int count, long length, long past, long requests) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      set(recorded, first, count, "");
      recorded.bytes = length;
      recorded.directBytes = past;
      recorded.writes = requests;
      recorded.commit();
    }
  }

  /// As [#done], for files that were not written.
  public void failed(@Nullable Path first, int count, Throwable reason) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      set(recorded, first, count, reason.toString());
      recorded.commit();
    }
  }

  private static void set(Recorded recorded, @Nullable Path first, int count, String reason) {
    recorded.file = first == null ? "" : first.toString();
    recorded.files = count;
    recorded.failure = reason;
  }
}
