// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;

/// Flight recorder event: a file had to change its transport.
public final class FallbackEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "Fallback",
          "Transport fallback",
          "A file's bytes use another transport than the one chosen first",
          new Field("file", "File", Unit.TEXT),
          new Field("transport", "Transport now used", Unit.TEXT),
          new Field("reason", "Reason", Unit.TEXT));

  private FallbackEvent() {
    super(KIND);
  }

  /// Writes the event if it is recorded.
  ///
  /// @param transport that the file's bytes use now
  /// @param reason why not the one before
  public static void happened(Location file, Transport transport, String reason) {
    FallbackEvent event = new FallbackEvent();
    if (event.isUnderWay()) {
      event.write(file.toString(), transport.toString(), reason);
    }
  }
}
