// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;

/// Checks that enough memory is available before anything is allocated, so that an operation which
/// takes too much is refused before it begins. Idle memory that is kept for the next slabs counts
/// as available.
///
/// An admission promises host memory to its owner: [HostMemory] does not promise the same memory
/// to others before it is mapped and its pages are touched. Device memory is checked but not
/// promised. Thread-safe.
public final class Admission implements AutoCloseable {
  private static final int OUT_OF_MEMORY = 2;
  private static final long LOOK_MILLIS = 10;
  private static final String FREE_SOME = "free some of it, or raise the limit of the container";

  /// The bytes of host memory that were promised and are not mapped yet.
  private final AtomicLong left;

  private Admission(long bytes) {
    left = new AtomicLong(bytes);
  }

  /// @param device the device of `use`'s device memory and pinned memory, or the host
  /// @param change what a user can do about a refusal
  /// @throws TransferException if less memory is available; the message has the figures
  public static void require(MemoryUse use, Device device, String change) {
    of(use, device, change).close();
  }

  /// Checks memory as [#require] does, and promises the host memory until the admission is closed.
  ///
  /// @return the promise of host memory
  public static Admission of(MemoryUse use, Device device, String change) {
    return Cleanup.orUndo(
        () -> ofHost(use.hostBytes(), change),
        host -> {
          if (device instanceof Device.Cuda cuda) {
            CudaContext context = CudaContext.of(cuda);
            requireOnDevice(context, use.deviceBytes(), change);
            requirePinned(use.pinnedBytes(), List.of(context), change);
          }
          return host;
        },
        Admission::close);
  }

  /// Checks and promises host memory alone.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static Admission ofHost(long bytes) {
    return ofHost(bytes, FREE_SOME);
  }

  private static Admission ofHost(long bytes, String change) {
    Admission made = new Admission(bytes);
    HostMemory.promise(bytes, change);
    return made;
  }

  /// Allocates a slab if its bytes are available.
  ///
  /// @throws TransferException if the machine or this control group has less available
  public static HostSlab slab(long bytes) {
    try (Admission admission = ofHost(bytes)) {
      return admission.allocate(bytes);
    }
  }

  /// Allocates a slab out of the promise, which shrinks by the slab's size.
  ///
  /// @throws TransferException if the kernel refuses the memory
  public HostSlab allocate(long bytes) {
    return HostMemory.keepingPromises(() -> {
      HostSlab slab = HostSlab.allocate(bytes);
      shrink(bytes);
      return slab;
    });
  }

  /// Does the same as [#allocate] for pinned memory.
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

  /// Counts memory that the caller has mapped as part of the promise, which shrinks by that many
  /// bytes. The memory counts as mapped until the caller calls [HostMemory#unmappedOnly].
  ///
  /// @param address page-aligned
  public void mapped(long address, long bytes) {
    HostMemory.keepingPromises(() -> {
      HostMemory.mapped(address, bytes);
      shrink(bytes);
      return this;
    });
  }

  /// Shrinks the promise by bytes that are mapped now, or are not needed.
  void shrink(long bytes) {
    long before = left.getAndAccumulate(bytes, (now, gone) -> Math.max(0, now - gone));
    HostMemory.endPromise(Math.min(before, bytes));
  }

  /// Ends the promise. Closing twice does nothing.
  @Override
  public void close() {
    shrink(Long.MAX_VALUE);
  }

  /// Slabs to allocate on one device.
  ///
  /// @param capacity the least memory that each slab takes on a GPU, in bytes
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

  /// Allocates slabs on several devices if each of them has enough memory, and otherwise none.
  /// Each device is listed once. Concurrent calls allocate a device's memory one after another, so
  /// that two loads do not each take a part of memory that is enough for one of them only.
  ///
  /// @param slabs receives a list of slabs for each device; if this call fails, the caller
  ///     releases the slabs that it received
  /// @param cancellation ends the call, also while it waits for another call that allocates on the
  ///     same device
  public static void allocate(
      List<Slabs> wanted, List<List<Slab>> slabs, String change, Cancellation cancellation) {
    List<ReentrantLock> held = new ArrayList<>();
    try {
      // All calls take the devices' locks in the same order, so that they cannot deadlock.
      wanted.stream()
          .mapMulti(Admission::context)
          .sorted(Comparator.comparingInt(context -> context.device().ordinal()))
          .forEach(context -> {
            lock(context.allocating(), cancellation);
            held.add(context.allocating());
          });
      take(wanted, slabs, change, cancellation);
    } finally {
      held.forEach(ReentrantLock::unlock);
    }
  }

  private static void context(Slabs wanted, Consumer<CudaContext> found) {
    if (wanted.device() instanceof Device.Cuda cuda) {
      found.accept(CudaContext.of(cuda));
    }
  }

  private static void lock(ReentrantLock lock, Cancellation cancellation) {
    try {
      while (!lock.tryLock(LOOK_MILLIS, TimeUnit.MILLISECONDS)) {
        requireWanted(cancellation);
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw cancelled(", on an interrupted thread");
    }
  }

  private static void requireWanted(Cancellation cancellation) {
    if (cancellation.isCancelled()) {
      throw cancelled("");
    }
  }

  private static TransferException cancelled(String why) {
    return new TransferException("allocate", "memory" + why, new Failure.Cancelled());
  }

  private static void take(
      List<Slabs> wanted, List<List<Slab>> slabs, String change, Cancellation cancellation) {
    List<Admission> admitted = new ArrayList<>();
    try {
      wanted.forEach(each -> admitted.add(of(each.use(), each.device(), change)));
      for (int i = 0; i < wanted.size(); i++) {
        Admission host = admitted.get(i);
        long capacity = wanted.get(i).capacity();
        List<Slab> each = new ArrayList<>();
        slabs.add(each);
        for (long size : wanted.get(i).sizes()) {
          requireWanted(cancellation);
          each.add(
              switch (wanted.get(i).device()) {
                case Device.Host _ -> host.allocate(size);
                case Device.Cuda cuda ->
                    DeviceSlab.allocate(CudaContext.of(cuda), size, Math.max(size, capacity));
              });
        }
      }
    } finally {
      Cleanup.forEach(admitted, Admission::close);
    }
  }

  /// Does the same as [#require] for the pinned buffers of several devices.
  ///
  /// @param bytes pinned memory for each device
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
    // Enough memory is idle, so the driver need not be asked for its free memory.
    if (bytes <= context.idleDevice().size()) {
      return;
    }
    long free = freeBytes(context);
    if (bytes > free) {
      // While another thread frees memory, the memory counts neither as idle nor as free, so this
      // waits for that thread and asks again.
      boolean _ = context.idleDevice().awaitReleases();
      free = freeBytes(context);
    }
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

  /// How many workers or buffers fit the available host memory if each takes `each`: at least 1,
  /// at most `most`.
  ///
  /// @param each the host memory and pinned memory that one of them takes
  public static int countOf(int most, MemoryUse each, Device device) {
    long available = HostMemory.availableBytes().orElse(Long.MAX_VALUE);
    long pinned = device instanceof Device.Cuda cuda ? CudaContext.of(cuda).idlePinned().size() : 0;
    long bytes = Math.max(1, each.hostBytes() + each.pinnedBytes());
    long room = each.pinnedBytes() > 0 ? Math.max(available, available + pinned) : available;
    return Math.clamp(room / bytes, 1, Math.max(1, most));
  }

  /// The bytes of a device's memory that new slabs can take.
  private static long freeBytes(CudaContext context) {
    try (var _ = context.enter()) {
      return context.driver().memoryInfo().freeBytes() + context.idleDevice().size();
    }
  }
}
