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
@Name("dev.gantry.Commit")
@Label("Commit step")
@Category("Gantry")
@Description("A step that makes a new file durable")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class CommitEvent extends Event {
  @Label("Step")
  @Description("synchronise file, rename or synchronise folder")
  private @Nullable String step;

  @Label("File")
  @Description("The file, with the name that it gets; or the folder")
  private @Nullable String file;

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

  /// Ends the event, and writes it if it is recorded.
  public void done(Step what, Path path) {
    end();
    if (shouldCommit()) {
      step = what.text;
      file = path.toString();
      commit();
    }
  }
}
