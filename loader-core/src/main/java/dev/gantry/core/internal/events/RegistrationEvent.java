// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import java.nio.file.Path;

/// Flight recorder event: cuFile was asked to take a file or memory.
public final class RegistrationEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "Registration",
          "Registration with cuFile",
          "cuFile was asked to take a file or memory",
          new Field("what", "What", Unit.TEXT, "A file's name, or memory"),
          new Field("device", "Device", Unit.TEXT),
          new Field("bytes", "Size", Unit.BYTES, "Of memory"),
          new Field(
              "refusal", "Refusal", Unit.TEXT, "Why cuFile did not take it; empty if it did"));

  public RegistrationEvent() {
    super(KIND);
  }

  /// cuFile was asked to take a file. Ends the event, and writes it if it is recorded.
  ///
  /// @param refusal why it did not; empty if it did
  public void ofFile(Path file, Device device, String refusal) {
    done(file, device, 0, refusal);
  }

  /// As [#ofFile], of memory of a device.
  public void ofMemory(Device device, long bytes, String refusal) {
    done("memory", device, bytes, refusal);
  }

  private void done(Object what, Device device, long bytes, String refusal) {
    if (end()) {
      write(what.toString(), device.toString(), bytes, refusal);
    }
  }
}
