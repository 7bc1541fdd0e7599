// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/// Flight recorder event: a file had to change its transport.
public final class FallbackEvent {
  /// The event as the recorder keeps it.
  @Name("dev.gantry.Fallback")
  @Label("Transport fallback")
  @Category("Gantry")
  @Description("A file's bytes use another transport than the one chosen first")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("File")
    final String file;

    @Label("Transport now used")
    final String transport;

    @Label("Reason")
    final String reason;

    Recorded(String file, String transport, String reason) {
      this.file = file;
      this.transport = transport;
      this.reason = reason;
    }
  }

  private FallbackEvent() {}

  /// Writes the event if it is recorded.
  ///
  /// @param transport that the file's bytes use now
  /// @param reason why not the one before
  public static void happened(Location file, Transport transport, String reason) {
    if (EventRecorder.wasStarted()) {
      new Recorded(file.toString(), transport.toString(), reason).commit();
    }
  }
}
