// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: files were written, until all are durable under their names.
public final class SaveEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "Save",
          "Save",
          "Files were written and got their names",
          new Field("file", "First file", Unit.TEXT),
          new Field("files", "Files", Unit.COUNT),
          new Field("bytes", "Written", Unit.BYTES),
          new Field("directBytes", "Written past the page cache", Unit.BYTES),
          new Field("writes", "Requests", Unit.COUNT),
          new Field("failure", "Failure", Unit.TEXT, "Empty if the files have their names"));

  public SaveEvent() {
    super(KIND);
  }

  /// Ends the event, and writes it if it is recorded.
  ///
  /// @param first one of the files
  /// @param writes how many requests it took
  public void done(@Nullable Path first, int files, long bytes, long directBytes, long writes) {
    write(first, files, bytes, directBytes, writes, "");
  }

  /// As [#done], for files that were not written.
  public void failed(@Nullable Path first, int files, Throwable reason) {
    write(first, files, 0, 0, 0, reason.toString());
  }

  private void write(
      @Nullable Path first, long files, long bytes, long directBytes, long writes, String failure) {
    if (end()) {
      write(first == null ? "" : first.toString(), files, bytes, directBytes, writes, failure);
    }
  }
}
