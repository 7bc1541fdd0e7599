// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.nio.file.Path;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: one step of the protocol by which files are written, whether it was done or failed.
public final class CommitEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Commit")
  @Label("Commit step")
  @Category("Gantry")
  @Description("A step that makes a new file durable")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("Step")
    @Description("synchronise file, rename or synchronise folder")
    @Nullable String step;

    @Label("File")
    @Description("The file, with the name that it gets; or the folder")
    @Nullable String file;
  }

  /// The steps that a crash must find done or not begun.
  public enum Step {
    SYNCHRONISE_FILE("synchronise file"),
    RENAME("rename"),
    SYNCHRONISE_FOLDER("synchronise folder");

    private final String text;

    Step(String text) {
      this.text = text;
    }
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// Ends the event, and writes it if it is recorded.
  public void done(Step what, Path path) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.step = what.text;
      recorded.file = path.toString();
      recorded.commit();
    }
  }
}
