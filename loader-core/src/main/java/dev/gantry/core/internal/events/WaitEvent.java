// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import java.util.Locale;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Threshold;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: a thread waited.
public final class WaitEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Wait")
  @Label("Wait")
  @Category("Gantry")
  @Description("A thread waited")
  @StackTrace(false)
  @Threshold("20 ms")
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("Waited for")
    @Description("buffers, copy or batch")
    @Nullable String waitedFor;
  }

  /// What a thread waits for.
  public enum Reason {
    /// A reader or writer waits for pinned buffers, which other loads and saves have.
    BUFFERS,
    /// A reader or writer waits until the device has done the copies from or into a buffer.
    COPY,
    /// The consumer of a ring waits for its next batch.
    BATCH
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// Ends the event, and writes it if it is recorded and long enough.
  public void done(Reason reason) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.waitedFor = reason.name().toLowerCase(Locale.ROOT);
      recorded.commit();
    }
  }
}
