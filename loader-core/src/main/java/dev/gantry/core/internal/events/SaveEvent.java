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
@Name("dev.gantry.Save")
@Label("Save")
@Category("Gantry")
@Description("Files were written and got their names")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class SaveEvent extends Event {
  @Label("First file")
  private @Nullable String file;

  @Label("Files")
  private long files;

  @Label("Written")
  @DataAmount
  private long bytes;

  @Label("Written past the page cache")
  @DataAmount
  private long directBytes;

  @Label("Requests")
  private long writes;

  @Label("Failure")
  @Description("Empty if the files have their names")
  private @Nullable String failure;

  /// Ends the event, and writes it if it is recorded.
  ///
  /// @param first one of the files
  /// @param requests the writes that it took
  public void done(@Nullable Path first, int count, long length, long past, long requests) {
    end();
    if (shouldCommit()) {
      set(first, count, "");
      bytes = length;
      directBytes = past;
      writes = requests;
      commit();
    }
  }

  /// As [#done], for files that were not written.
  public void failed(@Nullable Path first, int count, Throwable reason) {
    end();
    if (shouldCommit()) {
      set(first, count, reason.toString());
      commit();
    }
  }

  private void set(@Nullable Path first, int count, String reason) {
    file = first == null ? "" : first.toString();
    files = count;
    failure = reason;
  }
}
