// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import dev.gantry.core.Device;
import dev.gantry.core.internal.copies.CopyQueue;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.PinnedSlab;

/// The link between pinned memory and a GPU: one long copy at a time.
public final class LinkCeiling {
  /// The size of a copy in bytes, which is so large that the copy's start and end hardly count.
  public static final long BYTES = 512L << 20;

  private static final String NAME = "PCIe, ";

  private LinkCeiling() {}

  public static Contender of(Device.Cuda cuda, boolean toDevice) {
    CudaContext context = CudaContext.of(cuda);
    PinnedSlab pinned = PinnedSlab.allocate(context, BYTES);
    DeviceSlab device = DeviceSlab.allocate(context, BYTES);
    CopyQueue queue = new CopyQueue(context);
    return Contender.timed(
        NAME + (toDevice ? "host to device" : "device to host"),
        "copies of 512 MiB from or to pinned memory",
        () ->
            Contender.seconds(() -> {
              if (toDevice) {
                queue.copyToDevice(device.address(), pinned.address(), BYTES);
              } else {
                queue.copyToHost(pinned.address(), device.address(), BYTES);
              }
              queue.drain();
            }),
        queue::close,
        device::release,
        pinned::release);
  }

  /// Whether a contender is such a link, for which no file is hot or cold.
  public static boolean is(Contender contender) {
    return contender.name().startsWith(NAME);
  }
}
