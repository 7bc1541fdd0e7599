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
@Name("dev.gantry.Load")
@Label("Load")
@Category("Gantry")
@Description("Extents of files were loaded into memory")
@StackTrace(false)
@SuppressWarnings("UnusedVariable") // The recorder reads the fields.
public final class LoadEvent extends Event {
  @Label("Device")
  private @Nullable String device;

  @Label("Extents")
  private long extents;

  @Label("Files")
  private long files;

  @Label("Read")
  @Description("Blocks at the edges included")
  @DataAmount
  private long bytes;

  @Label("Read past the page cache")
  @DataAmount
  private long directBytes;

  @Label("Requests")
  private long reads;

  @Label("Failure")
  @Description("Empty if the load was done")
  private @Nullable String failure;

  /// Ends the event, and writes it if it is recorded.
  public void done(Device target, int wanted, TransferReport report) {
    end();
    if (shouldCommit()) {
      device = target.toString();
      extents = wanted;
      files = report.files().size();
      bytes = report.bytes();
      directBytes = report.directBytes();
      reads = report.reads();
      failure = "";
      commit();
    }
  }

  /// As [#done], for a load that failed or was cancelled.
  public void failed(Device target, int wanted, Throwable reason) {
    end();
    if (shouldCommit()) {
      device = target.toString();
      extents = wanted;
      failure = reason.toString();
      commit();
    }
  }
}
