// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// A flight recorder event for the copies from or into one buffer. It lasts from the queueing of
/// the first copy until the thread that uses the buffer again sees that the copies are done; the
/// device may have finished them earlier.
public final class CopyEvent extends TimedEvent {
  /// The kinds of memory that a copy is from and to.
  public enum Direction {
    TO_DEVICE,
    TO_HOST,
    ON_DEVICE,
    TO_ANOTHER_DEVICE;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
  }

  private @Nullable Direction direction;
  private long copies;
  private long bytes;

  public CopyEvent() {
    super(EventKind.COPY);
  }

  /// Counts a copy that was queued. The first copy of a buffer begins the event.
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

  /// Ends the event. Writes the event if any copies were queued, a recording has enabled the
  /// event, and the event is long enough.
  public void done(Device on) {
    if (direction != null) {
      done(on, direction, bytes, copies);
    }
  }
}
