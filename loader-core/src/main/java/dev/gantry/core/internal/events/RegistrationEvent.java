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
@Name("dev.gantry.Registration")
@Label("Registration with cuFile")
@Category("Gantry")
@Description("cuFile was asked to take a file or memory")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class RegistrationEvent extends Event {
  @Label("What")
  @Description("A file's name, or memory")
  private @Nullable String what;

  @Label("Device")
  private @Nullable String device;

  @Label("Size")
  @Description("Of memory")
  @DataAmount
  private long bytes;

  @Label("Refusal")
  @Description("Why cuFile did not take it; empty if it did")
  private @Nullable String refusal;

  /// cuFile was asked to take a file. Ends the event, and writes it if it is recorded.
  ///
  /// @param reason why it did not; empty if it did
  public void ofFile(Path file, Device on, String reason) {
    end();
    if (shouldCommit()) {
      set(file.toString(), on, 0, reason);
    }
  }

  /// As [#ofFile], of memory of a device.
  public void ofMemory(Device on, long length, String reason) {
    end();
    if (shouldCommit()) {
      set("memory", on, length, reason);
    }
  }

  private void set(String subject, Device on, long length, String reason) {
    what = subject;
    device = on.toString();
    bytes = length;
    refusal = reason;
    commit();
  }
}
