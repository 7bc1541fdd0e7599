// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.Event;
import org.jspecify.annotations.Nullable;

/// A flight recorder event that is under way. For one thread at a time.
abstract class TimedEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Event event;

  TimedEvent(EventKind kind) {
    event = EventRecorder.wasStarted() ? kind.newEvent() : null;
  }

  public void begin() {
    if (event != null) {
      event.begin();
    }
  }

  /// Whether this is under way: if not, nothing need be counted for it.
  final boolean isUnderWay() {
    return event != null;
  }

  /// Ends the event.
  ///
  /// @return whether to [#write] it: it is recorded, and long enough
  final boolean end() {
    if (event == null) {
      return false;
    }
    event.end();
    return event.shouldCommit();
  }

  /// Writes the event.
  ///
  /// @param values of its fields, in the order of its kind
  final void write(@Nullable Object... values) {
    if (event != null) {
      for (int i = 0; i < values.length; i++) {
        event.set(i, values[i]);
      }
      event.commit();
    }
  }
}
