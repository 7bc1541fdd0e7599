// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: the copies from or into one buffer, from when the first was queued until the thread that
/// uses the buffer again saw them done. The device may have been done before.
public final class CopyEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.onlyLong(
          "Copy",
          "Copy",
          "Bytes were copied between a device and a buffer in host memory",
          new Field("device", "Device", Unit.TEXT),
          new Field(
              "direction",
              "Direction",
              Unit.TEXT,
              "to device, to host, on device or to another device"),
          new Field("bytes", "Size", Unit.BYTES),
          new Field("copies", "Copies", Unit.COUNT, "How many copies a buffer's event stands for"));

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
    super(KIND);
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
    if (first != null && end()) {
      write(on.toString(), first.text, bytes, copies);
    }
  }
}
