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

/// Reads by cuFile whose destination in a slab is not aligned to blocks. cuFile would move such
/// bytes through its own bounce buffers of 1 MiB; instead, it reads into an aligned temporary
/// slab, from which the device copies. Only one thread may use an instance.
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
