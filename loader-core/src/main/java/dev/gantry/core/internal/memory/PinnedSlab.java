// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CudaDriver;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;

/// Page-locked (pinned) host memory. A GPU copies from and to such memory by DMA while the CPU
/// does other work.
public final class PinnedSlab extends CpuSlab {
  private final CudaContext context;
  private final Pages pages;

  /// @param pinned is made before the pages are pinned
  record Pages(HugePages pages, CudaDriver.PinnedMemory pinned) {
    private static Pages of(HugePages pages) {
      return new Pages(pages, new CudaDriver.PinnedMemory(pages.address(), pages.size()));
    }
  }

  private PinnedSlab(CudaContext context, Pages pages, long size) {
    super(pages.pages().address(), size, LiveResources.Kind.PINNED_BYTES, false);
    this.context = context;
    this.pages = pages;
  }

  /// Allocates a slab, from the pool of idle memory if memory there fits.
  ///
  /// @param size in bytes
  /// @throws TransferException if there is too little memory, or the driver cannot pin that
  ///     much
  public static PinnedSlab allocate(CudaContext context, long size) {
    return over(
        context,
        size,
        () -> {
          Pages idle = context.idlePinned().take(size);
          if (idle != null) {
            return idle;
          }
          try (Admission admission = admit(context, size)) {
            return pin(context, size, admission);
          }
        });
  }

  /// Does the same as [#allocate], out of the promise of the admission `admission`, which shrinks by
  /// the slab's size.
  static PinnedSlab allocate(CudaContext context, long size, Admission admission) {
    return over(
        context,
        size,
        () -> {
          Pages idle = context.idlePinned().take(size);
          if (idle == null) {
            return pin(context, size, admission);
          }
          admission.shrink(size);
          return idle;
        });
  }

  private static PinnedSlab over(CudaContext context, long size, Supplier<Pages> take) {
    checkSize(size);
    return Cleanup.orUndo(
        take, pages -> new PinnedSlab(context, pages, size), pages -> free(context, pages));
  }

  /// Pins memory for slabs that are allocated later, and keeps it idle. The kernel first provides
  /// the memory of all slabs, which needs no context, while another thread may be opening the
  /// device's context.
  ///
  /// @param size in bytes, of each slab
  /// @throws TransferException as [#allocate] does; what was pinned before stays idle
  public static void prepare(CudaContext context, int count, long size) {
    checkSize(size);
    Deque<Pages> unpinned = new ArrayDeque<>();
    try (Admission admission = Admission.ofHost(Math.multiplyExact(count, size))) {
      while (unpinned.size() < count) {
        unpinned.add(Cleanup.orUndo(() -> admission.map(size), Pages::of, HugePages::unmap));
        unpinned.getLast().pages().touch();
      }
      while (!unpinned.isEmpty()) {
        Pages pages = unpinned.getFirst();
        pin(context, pages);
        unpinned.removeFirst();
        context.idlePinned().keep(pages, size);
      }
    } finally {
      Cleanup.forEach(unpinned, pages -> pages.pages().unmap());
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

  /// Maps and pins memory. The promise ends as soon as the memory is mapped: pinning gigabytes
  /// takes seconds, during which the memory must not count both as promised and as mapped.
  private static Pages pin(CudaContext context, long size, Admission admission) {
    return Cleanup.orUndo(
        () -> admission.map(size),
        mapped -> {
          // Pinning would also make the kernel provide the pages, but on one processor only.
          mapped.touch();
          Pages pages = Pages.of(mapped);
          pin(context, pages);
          return pages;
        },
        HugePages::unmap);
  }

  private static void pin(CudaContext context, Pages pages) {
    try (var _ = context.enter()) {
      context.driver().pin(pages.pinned());
    }
  }

  /// Gives the memory to the pool. No copy from or into it may be running.
  @Override
  void free() {
    context.idlePinned().keep(pages, pages.pages().size());
  }

  static void free(CudaContext context, Pages pages) {
    try (var _ = context.enter()) {
      context.driver().unpin(pages.pinned());
    }
    pages.pages().unmap();
  }
}
