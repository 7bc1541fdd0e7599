package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;

/// One way for bytes to travel from a file into a slab. Thread-safe; its lanes are for one thread
/// each.
public sealed interface TransferPath permits HostPath, StagedPath, CuFilePath {
  /// One reader's own buffers and streams. For one thread.
  sealed interface Lane extends AutoCloseable
      permits HostPath.HostLane, StagedPath.StagedLane, CuFilePath.CuFileLane {
    /// Brings `read`'s bytes into `target`, in the order with the device's other work that it
    /// asks for. They may still be on their way when this returns: see [Target#ordered] and
    /// [#drain].
    ///
    /// @param direct whether to go past the page cache
    /// @return whether the bytes went past the page cache
    boolean read(SourceFile file, Read read, Target target, boolean direct);

    /// Waits until everything read has arrived.
    void drain();

    /// Waits for copies under way, whatever became of them, and frees the buffers.
    @Override
    void close();
  }
}
