// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;
import java.util.function.LongSupplier;

/// Ordinary host memory, page-aligned. Its content is arbitrary, since an earlier slab may have
/// used the memory. The kernel provides the pages of new memory when they are first touched.
public final class HostSlab extends CpuSlab {
  private static final long KEPT_NANOS = 10_000_000_000L;

  /// Smaller slabs are not kept for reuse.
  private static final long LEAST_IDLE_BYTES = 1 << 20;

  /// At most a quarter of the memory that is available is kept idle.
  private static final int IDLE_PART = 4;

  /// The process's pool of idle memory; no session owns it, since slabs outlive sessions. New
  /// memory is slow: the kernel clears each page, and a virtual machine may have to ask its host
  /// for the page. This takes once to ten times as long as reading the bytes from the page cache.
  private static final Pool<HugePages> IDLE = idle(() -> HostMemory.kernelBytes().orElse(0));

  private final HugePages pages;

  private HostSlab(HugePages pages, long size, boolean kept) {
    super(pages.address(), size, LiveResources.Kind.HOST_BYTES, kept);
    this.pages = pages;
  }

  /// @param availableBytes the host's available memory in bytes, without idle memory
  static Pool<HugePages> idle(LongSupplier availableBytes) {
    return new Pool<>(
        LiveResources.Kind.HOST_BYTES,
        KEPT_NANOS,
        () -> availableBytes.getAsLong() / IDLE_PART,
        HugePages::unmap);
  }

  /// Allocates a slab, in memory that an earlier slab had if there is some.
  ///
  /// @throws TransferException if the kernel refuses the memory
  public static HostSlab allocate(long size) {
    return allocate(size, false);
  }

  /// Does the same as [#allocate] for memory that the caller gives back when others need memory.
  /// Such memory does not count as used.
  public static HostSlab allocateKept(long size) {
    return allocate(size, true);
  }

  private static HostSlab allocate(long size, boolean kept) {
    checkSize(size);
    return Cleanup.orUndo(
        () -> pages(size), pages -> new HostSlab(pages, size, kept), HugePages::unmap);
  }

  private static HugePages pages(long size) {
    HugePages idle = size < LEAST_IDLE_BYTES ? null : IDLE.take(size);
    return idle == null ? HugePages.map(size) : idle;
  }

  /// Makes the kernel provide all pages now. The content is arbitrary afterwards.
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

  /// The bytes of idle memory that is kept for the next slabs.
  static long idleBytes() {
    return IDLE.size();
  }

  /// Waits until another thread has freed the idle memory that it is freeing.
  static void awaitReleases() {
    boolean _ = IDLE.awaitReleases();
  }

  /// Gives the idle memory back to the kernel.
  public static void freeIdle() {
    IDLE.free();
  }
}
