// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import org.jspecify.annotations.Nullable;

/// Reads by cuFile whose places in a slab are no whole blocks. cuFile would bring these through bounce buffers of its own, of
/// 1 MiB; so it reads into a slab beside, from which the device copies. For one thread.
final class ShiftedReads implements AutoCloseable {
  private @Nullable DeviceSlab beside;

  static boolean isShifted(Read read) {
    return read.slabOffset() % PlanLimits.BLOCK_BYTES != 0;
  }

  /// Does the same as [CuFileTransport#read].
  boolean read(
      CuFileTransport cuFile, SourceFile file, Read read, Target.InSlab target, boolean direct) {
    CudaContext context = ((DeviceSlab) target.slab()).context();
    DeviceSlab room = room(context, read.length());
    Read aligned =
        new Read(read.file(), read.fileOffset(), read.length(), read.required(), read.slab(), 0);
    boolean went = cuFile.read(file, aligned, Target.of(room), direct, (_, _) -> {});
    // Closing the queue waits for the copy.
    try (CopyQueue queue = new CopyQueue(context)) {
      queue.copyOnDevice(
          target.slab().address() + read.slabOffset(), room.address(), read.required());
    }
    return went;
  }

  private DeviceSlab room(CudaContext context, long bytes) {
    DeviceSlab present = beside;
    if (present == null || present.size() < bytes) {
      close();
      present = DeviceSlab.allocate(context, bytes);
      beside = present;
    }
    return present;
  }

  @Override
  public void close() {
    DeviceSlab closing = beside;
    beside = null;
    if (closing != null) {
      closing.release();
    }
  }
}
