// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.MemorySegment;
import java.util.function.BooleanSupplier;

/// A copy of a whole file in host memory. The CPU gathers short rows from it without a system call
/// for each row. The copy does not change when the file does.
final class CopiedFile implements KeptFile {
  private static final long STEP_BYTES = 8L << 20;

  private final Location location;
  private final Object identity;
  private final HostSlab slab;

  /// Reads the whole file into memory, and closes the file.
  ///
  /// @param file a local file that is not empty; if this constructor throws, the caller closes the
  ///     file
  /// @param isEnded asked before each piece of the file is read; true ends the copying
  /// @throws TransferException if the host has too little memory, the file cannot be read, or
  ///     `isEnded` has ended the copying
  /// @throws dev.gantry.core.MalformedFileException if the file was changed while it was copied
  CopiedFile(SourceFile file, BooleanSupplier isEnded) {
    location = file.file();
    identity = file.identity();
    long block = PlanLimits.BLOCK_BYTES;
    long bytes = Math.ceilDiv(file.size(), block) * block;
    slab =
        Cleanup.orUndo(
            () -> {
              try (Admission _ = Admission.ofHost(bytes)) {
                return HostSlab.allocateKept(bytes);
              }
            },
            made -> {
              fill(made, file, isEnded);
              file.close();
              return made;
            },
            HostSlab::release);
  }

  private static void fill(HostSlab slab, SourceFile file, BooleanSupplier isEnded) {
    for (long at = 0; at < file.size(); at += STEP_BYTES) {
      if (isEnded.getAsBoolean()) {
        throw new TransferException("copy", file.file().toString(), new Failure.Cancelled());
      }
      long step = Math.min(STEP_BYTES, slab.size() - at);
      boolean direct = file.residency(at, step) != Residency.HOT;
      boolean _ =
          file.read(slab.segment().asSlice(at, step), at, Math.min(step, file.size() - at), direct);
    }
  }

  @Override
  public Location location() {
    return location;
  }

  @Override
  public Object identity() {
    return identity;
  }

  @Override
  public long bytes() {
    return slab.size();
  }

  @Override
  public long address(long offset) {
    return slab.address() + offset;
  }

  @Override
  public MemorySegment segment() {
    return slab.segment();
  }

  /// Does nothing, since the copy does not change.
  @Override
  public void requireUnchanged() {}

  @Override
  public void close() {
    slab.release();
  }
}
