// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import java.util.Locale;

/// Flight recorder event: a thread waited.
public final class WaitEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.onlyLong(
          "Wait",
          "Wait",
          "A thread waited",
          new Field("waitedFor", "Waited for", Unit.TEXT, "buffers, copy or batch"));

  /// What a thread waits for.
  public enum Reason {
    /// A reader or writer waits for pinned buffers, which other loads and saves have.
    BUFFERS,
    /// A reader or writer waits until the device has done the copies from or into a buffer.
    COPY,
    /// The consumer of a ring waits for its next batch.
    BATCH
  }

  public WaitEvent() {
    super(KIND);
  }

  /// Ends the event, and writes it if it is recorded and long enough.
  public void done(Reason reason) {
    if (end()) {
      write(reason.name().toLowerCase(Locale.ROOT));
    }
  }
}
