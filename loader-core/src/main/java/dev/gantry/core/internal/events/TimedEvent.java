// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.Event;
import org.jspecify.annotations.Nullable;

/// A flight recorder event that is under way. For one thread at a time.
public class TimedEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Event event;

  /// An event that has not begun.
  public TimedEvent(EventKind kind) {
    event = EventRecorder.wasStarted() ? kind.newEvent() : null;
  }

  /// An event that begins now.
  public static TimedEvent begun(EventKind kind) {
    TimedEvent event = new TimedEvent(kind);
    event.begin();
    return event;
  }

  /// Begins.
  public final void begin() {
    if (event != null) {
      event.begin();
    }
  }

  /// Whether this is under way: if not, nothing need be counted for it.
  public final boolean isUnderWay() {
    return event != null;
  }

  /// Ends the event, and writes it if it is recorded and long enough.
  ///
  /// @param values of its fields, in the order of its kind: whole numbers, flags, and what becomes text; null is empty
  ///     text
  public final void done(@Nullable Object... values) {
    if (event == null) {
      return;
    }
    event.end();
    if (event.shouldCommit()) {
      for (int i = 0; i < values.length; i++) {
        event.set(
            i,
            switch (values[i]) {
              case null -> "";
              case Number number -> number.longValue();
              case Boolean flag -> flag;
              case Object text -> text.toString();
            });
      }
      event.commit();
    }
  }
}
