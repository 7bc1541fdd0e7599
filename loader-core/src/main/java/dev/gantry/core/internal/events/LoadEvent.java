// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.EventKind.Field;
import dev.gantry.core.internal.events.EventKind.Unit;

/// Flight recorder event: extents of files were loaded, from opening the files to the last byte.
public final class LoadEvent extends TimedEvent {
  static final EventKind KIND =
      EventKind.all(
          "Load",
          "Load",
          "Extents of files were loaded into memory",
          new Field("device", "Device", Unit.TEXT),
          new Field("extents", "Extents", Unit.COUNT),
          new Field("files", "Files", Unit.COUNT),
          new Field("bytes", "Read", Unit.BYTES, "Blocks at the edges included"),
          new Field("directBytes", "Read past the page cache", Unit.BYTES),
          new Field("reads", "Requests", Unit.COUNT),
          new Field("failure", "Failure", Unit.TEXT, "Empty if the load was done"));

  public LoadEvent() {
    super(KIND);
  }

  /// Ends the event, and writes it if it is recorded.
  public void done(Device target, int wanted, TransferReport report) {
    write(target, wanted, report, "");
  }

  /// As [#done], for a load that failed or was cancelled.
  public void failed(Device target, int wanted, Throwable reason) {
    write(target, wanted, TransferReport.NOTHING, reason.toString());
  }

  private void write(Device target, int wanted, TransferReport report, String failure) {
    if (end()) {
      write(
          target.toString(),
          (long) wanted,
          (long) report.files().size(),
          report.bytes(),
          report.directBytes(),
          report.reads(),
          failure);
    }
  }
}
