// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.spi.Residency;
import java.util.Locale;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: one request was read. Of `staged`, until the bytes were in a pinned buffer; a remote file's
/// requests end on the store's own threads.
public final class ReadEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Read")
  @Label("Read")
  @Category("Gantry")
  @Description("One request was read from a file")
  @StackTrace(false)
  @Threshold("20 ms")
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("File")
    @Nullable String file;

    @Label("Offset")
    @Description("In the file")
    @DataAmount
    long offset;

    @Label("Length")
    @DataAmount
    long length;

    @Label("Transport")
    @Nullable String transport;

    @Label("Page cache")
    @Description("Whether the bytes were in the page cache: hot, cold or unknown")
    @Nullable String residency;

    @Label("Past the page cache")
    @Description("Whether the bytes were read by O_DIRECT")
    boolean direct;
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// Ends the event, and writes it if it is recorded and long enough.
  ///
  /// @param past whether the bytes went past the page cache
  public void done(
      Location from,
      long fileOffset,
      long bytes,
      Transport by,
      Residency residencyBefore,
      boolean past) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.file = from.toString();
      recorded.offset = fileOffset;
      recorded.length = bytes;
      recorded.transport = by.toString();
      recorded.residency = residencyBefore.name().toLowerCase(Locale.ROOT);
      recorded.direct = past;
      recorded.commit();
    }
  }
}
