// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import dev.gantry.core.spi.Residency;
import java.util.Locale;

/// Flight recorder event: one request was read. A `staged` one ends when the bytes are in a pinned buffer; a remote
/// file's requests end on the store's own threads.
public final class ReadEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.onlyLong(
          "Read",
          "Read",
          "One request was read from a file",
          new Field("file", "File", Unit.TEXT),
          new Field("offset", "Offset", Unit.BYTES, "In the file"),
          new Field("length", "Length", Unit.BYTES),
          new Field("transport", "Transport", Unit.TEXT),
          new Field(
              "residency",
              "Page cache",
              Unit.TEXT,
              "Whether the bytes were in the page cache: hot, cold or unknown"),
          new Field(
              "direct",
              "Past the page cache",
              Unit.FLAG,
              "Whether the bytes were read by O_DIRECT"));

  public ReadEvent() {
    super(KIND);
  }

  /// Ends the event, and writes it if it is recorded and long enough.
  ///
  /// @param direct whether the bytes went past the page cache
  public void done(
      Location file,
      long offset,
      long length,
      Transport transport,
      Residency residency,
      boolean direct) {
    if (end()) {
      String before = residency.name().toLowerCase(Locale.ROOT);
      write(file.toString(), offset, length, transport.toString(), before, direct);
    }
  }
}
