// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import java.util.List;

/// Whether there is so much memory now, so that what takes it is refused before it begins. What is kept
/// for the next slabs counts as there.
public final class Room {
  private static final int OUT_OF_MEMORY = 2;

  private Room() {}

  /// @param device whose memory it is, beside the host's
  /// @param change what a user can do about it
  /// @throws TransferException if there is less, with the figures
  public static void require(MemoryUse use, Device device, String change) {
    if (use.hostBytes() > 0) {
      HostMemory.require(use.hostBytes(), change);
    }
    if (device instanceof Device.Cuda cuda) {
      CudaContext context = CudaContext.of(cuda);
      requireOnDevice(context, use.deviceBytes(), change);
      requirePinned(use.pinnedBytes(), List.of(context), change);
    }
  }

  /// As [#require], of pinned memory for the copies of several devices.
  ///
  /// @param bytes for each of them
  public static void requirePinned(long bytes, List<CudaContext> devices, String change) {
    long more =
        devices.stream()
            .mapToLong(context -> Math.max(0, bytes - context.idlePinned().bytes()))
            .sum();
    if (more > 0) {
      HostMemory.require(more, change);
    }
  }

  private static void requireOnDevice(CudaContext context, long bytes, String change) {
    // What is idle is there, whatever the driver has besides.
    if (bytes <= context.idleDevice().bytes()) {
      return;
    }
    long free = freeBytes(context);
    if (bytes > free) {
      throw new TransferException(
          "allocate",
          bytes + " bytes of memory of " + context.device(),
          new Failure.Cuda(
              OUT_OF_MEMORY,
              "CUDA_ERROR_OUT_OF_MEMORY",
              "only " + free + " bytes are free; " + change));
    }
  }

  /// How many of `most` things there is room for that take so much each, but one at least.
  ///
  /// @param each of the host's memory and of pinned memory
  public static int countOf(int most, MemoryUse each, Device device) {
    long available = HostMemory.availableBytes().orElse(Long.MAX_VALUE);
    long pinned =
        device instanceof Device.Cuda cuda ? CudaContext.of(cuda).idlePinned().bytes() : 0;
    long bytes = Math.max(1, each.hostBytes() + each.pinnedBytes());
    long room = each.pinnedBytes() > 0 ? Math.max(available, available + pinned) : available;
    return Math.clamp(room / bytes, 1, Math.max(1, most));
  }

  /// Whether a device, or the host, has so much now.
  public static boolean has(long bytes, Device device) {
    return switch (device) {
      case Device.Host _ -> bytes <= HostMemory.availableBytes().orElse(Long.MAX_VALUE);
      case Device.Cuda cuda -> bytes <= freeBytes(CudaContext.of(cuda));
    };
  }

  /// What a device has for slabs.
  public static long freeBytes(CudaContext context) {
    try (var _ = context.enter()) {
      return context.driver().memoryInfo().freeBytes() + context.idleDevice().bytes();
    }
  }
}
