// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;
import java.nio.file.Path;

/// Flight recorder event: one step of the protocol by which files are written, whether it was done or failed.
public final class CommitEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "Commit",
          "Commit step",
          "A step that makes a new file durable",
          new Field("step", "Step", Unit.TEXT, "synchronise file, rename or synchronise folder"),
          new Field(
              "file", "File", Unit.TEXT, "The file, with the name that it gets; or the folder"));

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

  public CommitEvent() {
    super(KIND);
  }

  /// Ends the event, and writes it if it is recorded.
  public void done(Step step, Path path) {
    if (end()) {
      write(step.text, path.toString());
    }
  }
}
