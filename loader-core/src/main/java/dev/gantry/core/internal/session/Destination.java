// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.Device;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferEngine.Spread;
import dev.gantry.core.internal.transport.TransferOptions;
import java.util.List;

/// Where the bytes of a load go. For one load.
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

  /// What the readers take for themselves, besides the memory that the bytes go to.
  ///
  /// @param through whether bytes may go through a buffer, because they do not lie in memory as in the file
  static MemoryUse readersUse(
      TransferEngine engine,
      List<Read> reads,
      boolean through,
      Device device,
      TransferOptions options) {
    long longest = through ? reads.stream().mapToLong(Read::length).max().orElse(0) : 0;
    return engine.readersUse(reads, longest, device, options);
  }
}
