// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: the copies from or into one buffer, from when the first was queued until the thread that
/// uses the buffer again saw them done. The device may have been done before.
public final class CopyEvent extends TimedEvent {
  /// What is copied where.
  public enum Direction {
    TO_DEVICE("to device"),
    TO_HOST("to host"),
    ON_DEVICE("on device"),
    TO_PEER("to another device");

    private final String text;

    Direction(String text) {
      this.text = text;
    }
  }

  private @Nullable Direction direction;
  private long copies;
  private long bytes;

  public CopyEvent() {
    super(EventKind.COPY);
  }

  /// A copy was queued; the first of a buffer begins the event.
  public void add(Direction where, long length) {
    if (!isUnderWay()) {
      return;
    }
    if (copies == 0) {
      begin();
      direction = where;
    }
    copies++;
    bytes += length;
  }

  /// Ends the event, and writes it if any copies were queued, it is recorded, and it is long enough.
  public void done(Device on) {
    Direction first = direction;
    if (first != null) {
      done(on, first.text, bytes, copies);
    }
  }
}
