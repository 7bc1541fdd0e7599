// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: the copies from or into one buffer, from when the first was queued until the thread that
/// uses the buffer again saw them done. The device may have been done before.
public final class CopyEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Copy")
  @Label("Copy")
  @Category("Gantry")
  @Description("Bytes were copied between a device and a buffer in host memory")
  @StackTrace(false)
  @Threshold("20 ms")
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("Device")
    @Nullable String device;

    @Label("Direction")
    @Description("to device, to host, on device or to another device")
    @Nullable String direction;

    @Label("Size")
    @DataAmount
    long bytes;

    @Label("Copies")
    @Description("How many copies a buffer's event stands for")
    long copies;
  }

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

  /// A copy was queued; the first of a buffer begins the event.
  public void add(Direction where, long length) {
    if (recorded == null) {
      return;
    }
    if (recorded.copies == 0) {
      recorded.begin();
      recorded.direction = where.text;
    }
    recorded.copies++;
    recorded.bytes += length;
  }

  /// Ends the event, and writes it if any copies were queued, it is recorded, and it is long enough.
  public void done(Device on) {
    if (recorded == null || recorded.copies == 0) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.device = on.toString();
      recorded.commit();
    }
  }
}
