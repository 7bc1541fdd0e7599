// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.Event;
import org.jspecify.annotations.Nullable;

/// A flight recorder event that is under way. Only one thread at a time may use it.
public class TimedEvent {
  /// The event; null if no recorder was ever started when this was made.
  private final @Nullable Event event;

  /// Makes an event that has not begun.
  public TimedEvent(EventKind kind) {
    event = EventRecorder.wasStarted() ? kind.newEvent() : null;
  }

  /// Makes an event that begins now.
  public static TimedEvent begun(EventKind kind) {
    TimedEvent event = new TimedEvent(kind);
    event.begin();
    return event;
  }

  /// Begins the event.
  public final void begin() {
    if (event != null) {
      event.begin();
    }
  }

  /// Whether this object has an event. If it has none, callers need not count anything for it.
  public final boolean isUnderWay() {
    return event != null;
  }

  /// Ends the event, and writes it if a recording has enabled it and it is long enough.
  ///
  /// @param values the values of the event's fields, in the order of its kind: numbers, flags, or objects that
  ///     become text; null becomes empty text
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
