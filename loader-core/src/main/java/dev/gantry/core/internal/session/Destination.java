// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.internal.transport.TransferEngine.Spread;
import java.util.List;

/// The place where the bytes of a load go. For one load.
sealed interface Destination permits NewSlabs, GivenMemory {
  /// The devices that get bytes, each once.
  List<Device> devices();

  /// What is read, in the order of files and offsets.
  List<Read> reads();

  /// Who gets the bytes of a read.
  Spread spread();

  /// How many things are loaded, for events.
  int parts();

  /// Makes the memory ready: allocates it, or waits for work that uses it. Called once, after the files were found
  /// long enough.
  ///
  /// @return the reads with the memory that each of them fills
  List<Task> prepare();

  /// Called when all bytes are there.
  ///
  /// @return the report that the caller gets
  TransferReport finish(TransferReport report);

  /// Frees what [#prepare] allocated, after a failure.
  void undo(Throwable failure);
}
