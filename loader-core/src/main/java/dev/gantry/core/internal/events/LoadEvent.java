// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/// Flight recorder event: extents of files were loaded, from opening the files to the last byte.
public final class LoadEvent {
  /// Null where no recorder was ever started: see the package.
  private final @Nullable Recorded recorded = EventRecorder.wasStarted() ? new Recorded() : null;

  /// The event as the recorder keeps it.
  @Name("dev.gantry.Load")
  @Label("Load")
  @Category("Gantry")
  @Description("Extents of files were loaded into memory")
  @StackTrace(false)
  @SuppressWarnings("UnusedVariable") // The recorder reads the fields.
  static final class Recorded extends Event {
    @Label("Device")
    @Nullable String device;

    @Label("Extents")
    long extents;

    @Label("Files")
    long files;

    @Label("Read")
    @Description("Blocks at the edges included")
    @DataAmount
    long bytes;

    @Label("Read past the page cache")
    @DataAmount
    long directBytes;

    @Label("Requests")
    long reads;

    @Label("Failure")
    @Description("Empty if the load was done")
    @Nullable String failure;
  }

  public void begin() {
    if (recorded != null) {
      recorded.begin();
    }
  }

  /// Ends the event, and writes it if it is recorded.
  public void done(Device target, int wanted, TransferReport report) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.device = target.toString();
      recorded.extents = wanted;
      recorded.files = report.files().size();
      recorded.bytes = report.bytes();
      recorded.directBytes = report.directBytes();
      recorded.reads = report.reads();
      recorded.failure = "";
      recorded.commit();
    }
  }

  /// As [#done], for a load that failed or was cancelled.
  public void failed(Device target, int wanted, Throwable reason) {
    if (recorded == null) {
      return;
    }
    recorded.end();
    if (recorded.shouldCommit()) {
      recorded.device = target.toString();
      recorded.extents = wanted;
      recorded.failure = reason.toString();
      recorded.commit();
    }
  }
}
