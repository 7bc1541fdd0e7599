// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: cuFile was asked to take a file or memory.
public final class RegistrationEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Registration")
  @Label("Registration with cuFile")
  @Category("Gantry")
  @Description("cuFile was asked to take a file or memory")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("What")
    @Description("A file's name, or memory")
    @Nullable String what;

    @Label("Device")
    @Nullable String device;

    @Label("Size")
    @Description("Of memory")
    @DataAmount
    long bytes;

    @Label("Refusal")
    @Description("Why cuFile did not take it; empty if it did")
    @Nullable String refusal;
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// cuFile was asked to take a file. Ends the event, and writes it if it is recorded.
  ///
  /// @param reason why it did not; empty if it did
  public void ofFile(Path file, Device on, String reason) {
    done(file, on, 0, reason);
  }

  /// As [#ofFile], of memory of a device.
  public void ofMemory(Device on, long length, String reason) {
    done("memory", on, length, reason);
  }

  private void done(Object subject, Device on, long length, String reason) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.what = subject.toString();
      recorded.device = on.toString();
      recorded.bytes = length;
      recorded.refusal = reason;
      recorded.commit();
    }
  }
}
