// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.transport.CopyQueue;

/// The link between pinned memory and a GPU: one long copy at a time.
public final class LinkCeiling implements Contender {
  /// The size of a copy: so long that its start and end hardly count.
  public static final long BYTES = 512L << 20;

  private final boolean toDevice;
  private final PinnedSlab pinned;
  private final DeviceSlab device;
  private final CopyQueue queue;

  public LinkCeiling(Device.Cuda cuda, boolean toDevice) {
    this.toDevice = toDevice;
    CudaContext context = CudaContext.of(cuda);
    pinned = PinnedSlab.allocate(context, BYTES);
    device = DeviceSlab.allocate(context, BYTES);
    queue = new CopyQueue(context);
  }

  @Override
  public String name() {
    return toDevice ? "PCIe, host to device" : "PCIe, device to host";
  }

  @Override
  public String note() {
    return "copies of 512 MiB from or to pinned memory";
  }

  @Override
  public double run() {
    long start = System.nanoTime();
    if (toDevice) {
      queue.copyToDevice(device.address(), pinned.address(), BYTES);
    } else {
      queue.copyToHost(pinned.address(), device.address(), BYTES);
    }
    queue.drain();
    return (System.nanoTime() - start) / 1e9;
  }

  @Override
  public void close() {
    queue.close();
    device.release();
    pinned.release();
  }
}
