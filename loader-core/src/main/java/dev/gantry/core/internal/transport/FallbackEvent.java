package dev.gantry.core.internal.transport;

import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/// In a flight recording: a file that had to leave its path in mid-way.
@Name("dev.gantry.Fallback")
@Label("Path fallback")
@Category("Gantry")
@Description("A file's bytes go another way than the one chosen first")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class FallbackEvent extends Event {
  @Label("File")
  private final String file;

  @Label("Path now taken")
  private final String path;

  @Label("Reason")
  private final String reason;

  /// @param file whose bytes go another way
  /// @param path that they take now
  /// @param reason why not the one before
  public FallbackEvent(String file, String path, String reason) {
    this.file = file;
    this.path = path;
    this.reason = reason;
  }
}
