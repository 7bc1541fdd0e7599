// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;
import java.util.ArrayDeque;
import java.util.Deque;

/// Page-locked host memory, which a GPU reads and writes by itself while the CPU does other work.
public final class PinnedSlab extends CpuSlab {
  private final CudaContext context;
  private final HugePages pages;

  private PinnedSlab(CudaContext context, HugePages pages, long size) {
    super(pages.address(), size, LiveResources.Kind.PINNED_BYTES, false);
    this.context = context;
    this.pages = pages;
  }

  /// Allocates a slab, in memory that an earlier slab had if there is some.
  ///
  /// @param size in bytes
  /// @throws TransferException if there is too little memory, or the driver cannot pin that
  ///     much
  public static PinnedSlab allocate(CudaContext context, long size) {
    checkSize(size);
    HugePages idle = context.idlePinned().take(size);
    if (idle != null) {
      return new PinnedSlab(context, idle, size);
    }
    try (Admission room = admit(context, size)) {
      return new PinnedSlab(context, pin(context, size, room), size);
    }
  }

  /// Does the same as [#allocate], out of the promise of `room`, which shrinks by the slab's size.
  static PinnedSlab allocate(CudaContext context, long size, Admission room) {
    checkSize(size);
    HugePages idle = context.idlePinned().take(size);
    if (idle != null) {
      room.shrink(size);
      return new PinnedSlab(context, idle, size);
    }
    return new PinnedSlab(context, pin(context, size, room), size);
  }

  /// Pins memory for slabs that are allocated later, and keeps it idle. The kernel provides the memory before the device's
  /// context is needed, which another thread may be opening.
  ///
  /// @param size in bytes, of each slab
  /// @throws TransferException as [#allocate] does; what was pinned before stays idle
  public static void prepare(CudaContext context, int count, long size) {
    checkSize(size);
    Deque<HugePages> unpinned = new ArrayDeque<>();
    try (Admission room = Admission.ofHost(Math.multiplyExact(count, size))) {
      while (unpinned.size() < count) {
        unpinned.add(room.map(size));
        unpinned.getLast().touch();
      }
      while (!unpinned.isEmpty()) {
        HugePages pages = unpinned.getFirst();
        pin(context, pages);
        unpinned.removeFirst();
        context.idlePinned().keep(pages, size);
      }
    } finally {
      Cleanup.runAll(unpinned.stream().<Runnable>map(pages -> pages::unmap).toList());
    }
  }

  /// Promises host memory; if there is too little, frees idle pinned memory and tries again.
  private static Admission admit(CudaContext context, long size) {
    try {
      return Admission.ofHost(size);
    } catch (TransferException e) {
      if (context.idlePinned().size() == 0) {
        throw e;
      }
      context.idlePinned().free();
      return Admission.ofHost(size);
    }
  }

  /// Maps and pins memory. The promise ends when the memory is mapped: pinning takes seconds for gigabytes, and the
  /// memory must not count twice meanwhile.
  private static HugePages pin(CudaContext context, long size, Admission room) {
    return Cleanup.orUndo(
        () -> room.map(size),
        pages -> {
          // Pinning would provide the pages too, but on one processor.
          pages.touch();
          pin(context, pages);
          return pages;
        },
        HugePages::unmap);
  }

  private static void pin(CudaContext context, HugePages pages) {
    try (var _ = context.enter()) {
      context.driver().pin(pages.address(), pages.size());
    }
  }

  /// Gives the memory back. No copy from or into it may be running.
  @Override
  void free() {
    context.idlePinned().keep(pages, pages.size());
  }

  static void free(CudaContext context, HugePages pages) {
    try (var _ = context.enter()) {
      context.driver().unpin(pages.address());
    }
    pages.unmap();
  }
}
