// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;
import java.util.function.LongSupplier;

/// Ordinary host memory, page-aligned, with arbitrary bytes in it: it may have been an earlier slab's.
/// Else the kernel provides pages when they are first touched.
public final class HostSlab extends CpuSlab {
  private static final long KEPT_NANOS = 10_000_000_000L;

  /// Less is not worth a look at what is available.
  private static final long LEAST_IDLE_BYTES = 1 << 20;

  /// One part in so many of the memory that is available may be idle.
  private static final int IDLE_PART = 4;

  /// The pool is the process's, because slabs outlive sessions. The kernel clears each page of new memory, and a
  /// virtual machine may have to ask its host for it: that takes as long as the bytes take from the page cache, and up
  /// to ten times as long.
  private static final Pool<HugePages> IDLE = idle(() -> HostMemory.kernelBytes().orElse(0));

  private final HugePages pages;

  private HostSlab(HugePages pages, long size, boolean kept) {
    super(pages.address(), size, LiveResources.Kind.HOST_BYTES, kept);
    this.pages = pages;
  }

  /// @param availableBytes besides what is idle
  static Pool<HugePages> idle(LongSupplier availableBytes) {
    return new Pool<>(
        LiveResources.Kind.HOST_BYTES,
        KEPT_NANOS,
        () -> availableBytes.getAsLong() / IDLE_PART,
        HugePages::unmap);
  }

  /// In memory that an earlier slab had, if there is some.
  ///
  /// @throws TransferException if the kernel has no room
  public static HostSlab allocate(long size) {
    return allocate(size, false);
  }

  /// As [#allocate], for what the caller gives back when others need the memory: it does not count as
  /// used.
  public static HostSlab allocateKept(long size) {
    return allocate(size, true);
  }

  private static HostSlab allocate(long size, boolean kept) {
    checkSize(size);
    HugePages idle = size < LEAST_IDLE_BYTES ? null : IDLE.take(size);
    return new HostSlab(idle == null ? HugePages.map(size) : idle, size, kept);
  }

  /// Makes the kernel provide all pages now. The bytes are arbitrary afterwards.
  public void touch() {
    pages.touch();
  }

  @Override
  void free() {
    if (pages.size() < LEAST_IDLE_BYTES) {
      pages.unmap();
    } else {
      IDLE.keep(pages, pages.size());
    }
  }

  /// Bytes that are kept for the next slabs.
  static long idleBytes() {
    return IDLE.size();
  }

  /// Gives what is kept for the next slabs back to the kernel.
  public static void freeIdle() {
    IDLE.free();
  }
}
