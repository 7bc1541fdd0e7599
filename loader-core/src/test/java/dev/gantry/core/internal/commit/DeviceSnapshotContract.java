// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Snapshots of device memory. The originals are overwritten by copies that are queued behind the
/// snapshot's copies, if any of these are still queued.
abstract class DeviceSnapshotContract extends SnapshotContract {
  static final Device.Cuda DEVICE = new Device.Cuda(0);

  private final CudaContext context = CudaContext.of(DEVICE);
  private final List<DeviceSlab> slabs = new ArrayList<>();

  @Override
  Source source(byte[] bytes) {
    if (bytes.length == 0) {
      return new Memory.OnDevice(DEVICE, 0, 0);
    }
    DeviceSlab slab = DeviceSlab.allocate(context, bytes.length);
    slabs.add(slab);
    upload(slab, bytes);
    return new Memory.OnDevice(DEVICE, slab.address(), bytes.length);
  }

  private void upload(DeviceSlab slab, byte[] bytes) {
    PinnedSlab pinned = PinnedSlab.allocate(context, bytes.length);
    try (CopyQueue queue = new CopyQueue(context)) {
      pinned.segment().copyFrom(MemorySegment.ofArray(bytes));
      queue.copyToDevice(slab.address(), pinned.address(), bytes.length);
    } finally {
      pinned.release();
    }
  }

  @Override
  void scribble() {
    for (DeviceSlab slab : slabs) {
      byte[] garbage = new byte[Math.toIntExact(slab.size())];
      upload(slab, garbage);
    }
  }

  @Override
  void closeMemory() {
    Slab.releaseAll(slabs);
  }
}
