// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/// Flight recorder event: a file had to change its transport.
@Name("dev.gantry.Fallback")
@Label("Transport fallback")
@Category("Gantry")
@Description("A file's bytes use another transport than the one chosen first")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class FallbackEvent extends Event {
  @Label("File")
  private final String file;

  @Label("Transport now used")
  private final String transport;

  @Label("Reason")
  private final String reason;

  /// @param transport that the file's bytes use now
  /// @param reason why not the one before
  public FallbackEvent(String file, String transport, String reason) {
    this.file = file;
    this.transport = transport;
    this.reason = reason;
  }
}
