// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.List;

/// Asks whether memory is there before anything is allocated, so that what takes too much is refused before it begins.
/// What is kept for the next slabs counts as there.
///
/// An admission is a promise of host memory, which others do not get: [HostMemory] counts it until the memory's pages are
/// touched. Memory of devices is promised by its allocation only. Thread-safe.
public final class Admission implements AutoCloseable {
  private static final int OUT_OF_MEMORY = 2;
  private static final String FREE_SOME = "free some of it, or raise the limit of the container";

  /// The host memory that was promised and is not mapped yet.
  private long left;

  private Admission(long bytes) {
    left = bytes;
  }

  /// @param device whose memory it is, beside the host's
  /// @param change what a user can do about it
  /// @throws TransferException if there is less, with the figures
  public static void require(MemoryUse use, Device device, String change) {
    of(use, device, change).close();
  }

  /// As [#require].
  ///
  /// @return the host's memory
  public static Admission of(MemoryUse use, Device device, String change) {
    Admission host = ofHost(use.hostBytes(), change);
    return Cleanup.orUndo(
        () -> {
          if (device instanceof Device.Cuda cuda) {
            CudaContext context = CudaContext.of(cuda);
            requireOnDevice(context, use.deviceBytes(), change);
            requirePinned(use.pinnedBytes(), List.of(context), change);
          }
          return host;
        },
        host::close);
  }

  /// As [#of], of host memory alone.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static Admission ofHost(long bytes) {
    return ofHost(bytes, FREE_SOME);
  }

  private static Admission ofHost(long bytes, String change) {
    HostMemory.promise(bytes, change);
    return new Admission(bytes);
  }

  /// As [#ofHost], but only checks: what was promised is given back at once.
  public static void requireHost(long bytes) {
    ofHost(bytes).close();
  }

  /// A slab, if its bytes are available.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static HostSlab slab(long bytes) {
    try (Admission admission = ofHost(bytes)) {
      return admission.allocate(bytes);
    }
  }

  /// A slab out of the promise, which shrinks by its size.
  ///
  /// @throws TransferException if the kernel has no room
  public HostSlab allocate(long bytes) {
    return HostMemory.keepingPromises(() -> {
      HostSlab slab = HostSlab.allocate(bytes);
      shrink(bytes);
      return slab;
    });
  }

  /// As [#allocate], of pinned memory.
  public PinnedSlab pin(CudaContext context, long bytes) {
    return PinnedSlab.allocate(context, bytes, this);
  }

  /// Maps memory out of the promise, which shrinks by its size.
  HugePages map(long bytes) {
    return HostMemory.keepingPromises(() -> {
      HugePages pages = HugePages.map(bytes);
      shrink(bytes);
      return pages;
    });
  }

  /// Takes memory of the kernel that the caller has mapped out of the promise. It is not available to
  /// others until [HostMemory#unmappedOnly].
  ///
  /// @param address page-aligned
  public void mapped(long address, long bytes) {
    HostMemory.keepingPromises(() -> {
      HostMemory.mapped(address, bytes);
      shrink(bytes);
      return this;
    });
  }

  /// So many bytes are no longer promised: they were mapped, or are not needed.
  void shrink(long bytes) {
    HostMemory.keepingPromises(() -> {
      long gone = Math.clamp(bytes, 0, left);
      left -= gone;
      HostMemory.endPromise(gone);
      return this;
    });
  }

  /// Ends the promise. Closing twice does nothing.
  @Override
  public void close() {
    shrink(Long.MAX_VALUE);
  }

  /// Slabs of one device.
  ///
  /// @param capacity the least that each takes of a GPU
  public record Slabs(Device device, List<Long> sizes, long capacity) {
    private MemoryUse use() {
      boolean onHost = device instanceof Device.Host;
      return MemoryUse.on(
          device,
          sizes.stream()
              .mapToLong(size -> onHost ? size : Math.max(size, capacity))
              .reduce(0, Math::addExact));
    }
  }

  /// Allocates slabs on several devices, each of which is there once, if all of them have room.
  ///
  /// @param slabs gets a list for each device; also if this fails, for the caller to release
  public static void allocate(List<Slabs> wanted, List<List<Slab>> slabs, String change) {
    List<Admission> admitted = new ArrayList<>();
    try {
      wanted.forEach(each -> admitted.add(of(each.use(), each.device(), change)));
      for (int i = 0; i < wanted.size(); i++) {
        Admission host = admitted.get(i);
        long capacity = wanted.get(i).capacity();
        List<Slab> each = new ArrayList<>();
        slabs.add(each);
        for (long size : wanted.get(i).sizes()) {
          each.add(
              switch (wanted.get(i).device()) {
                case Device.Host _ -> host.allocate(size);
                case Device.Cuda cuda ->
                    DeviceSlab.allocate(CudaContext.of(cuda), size, Math.max(size, capacity));
              });
        }
      }
    } finally {
      admitted.forEach(Admission::close);
    }
  }

  /// As [#require], of pinned memory for the copies of several devices.
  ///
  /// @param bytes for each of them
  public static void requirePinned(long bytes, List<CudaContext> devices, String change) {
    long more =
        devices.stream()
            .mapToLong(context -> Math.max(0, bytes - context.idlePinned().size()))
            .sum();
    if (more > 0) {
      ofHost(more, change).close();
    }
  }

  private static void requireOnDevice(CudaContext context, long bytes, String change) {
    // What is idle is there, whatever the driver has besides.
    if (bytes <= context.idleDevice().size()) {
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
    long pinned = device instanceof Device.Cuda cuda ? CudaContext.of(cuda).idlePinned().size() : 0;
    long bytes = Math.max(1, each.hostBytes() + each.pinnedBytes());
    long room = each.pinnedBytes() > 0 ? Math.max(available, available + pinned) : available;
    return Math.clamp(room / bytes, 1, Math.max(1, most));
  }

  /// What a device has for slabs.
  private static long freeBytes(CudaContext context) {
    try (var _ = context.enter()) {
      return context.driver().memoryInfo().freeBytes() + context.idleDevice().size();
    }
  }
}
