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

/// Flight recorder event: one request was read. Of `staged`, until the bytes were in a pinned buffer; a remote file's requests
/// end on the store's own threads.
@Name("dev.gantry.Read")
@Label("Read")
@Category("Gantry")
@Description("One request was read from a file")
@StackTrace(false)
@Threshold("20 ms")
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class ReadEvent extends Event {
  @Label("File")
  private @Nullable String file;

  @Label("Offset")
  @Description("In the file")
  @DataAmount
  private long offset;

  @Label("Length")
  @DataAmount
  private long length;

  @Label("Transport")
  private @Nullable String transport;

  @Label("Page cache")
  @Description("Whether the bytes were in the page cache: hot, cold or unknown")
  private @Nullable String residency;

  @Label("Past the page cache")
  @Description("Whether the bytes were read by O_DIRECT")
  private boolean direct;

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
    end();
    if (shouldCommit()) {
      file = from.toString();
      offset = fileOffset;
      length = bytes;
      transport = by.toString();
      residency = residencyBefore.name().toLowerCase(Locale.ROOT);
      direct = past;
      commit();
    }
  }
}
