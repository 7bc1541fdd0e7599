// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.internal.transport.TransferEngine.Spread;
import java.util.List;

/// The memory that the bytes of one load fill.
sealed interface Destination permits NewSlabs, GivenMemory {
  /// The devices that get bytes, each once.
  List<Device> devices();

  /// The reads of the load, in the order of files and offsets.
  List<Read> reads();

  /// The devices that get the bytes of a read.
  Spread spread();

  /// The number of extents or pieces that are loaded, for JFR events.
  int parts();

  /// Makes the memory ready: allocates it, or waits for queued work that uses it. Called once,
  /// after all files were found to be long enough.
  ///
  /// @return the reads, each with the memory that it fills
  List<Task> prepare();

  /// Completes the load. Called after all bytes have arrived.
  ///
  /// @return the report for the load's caller
  TransferReport finish(TransferReport report);

  /// Frees what [#prepare] allocated, after a failure.
  void undo(Throwable failure);
}
