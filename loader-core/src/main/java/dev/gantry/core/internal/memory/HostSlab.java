// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;

/// Ordinary host memory, page-aligned, with arbitrary bytes in it: it may have been an earlier slab's
/// ([HostReuse]). Else the kernel provides pages when they are first touched.
public final class HostSlab extends CpuSlab {
  private final HugePages pages;

  private HostSlab(HugePages pages, long size) {
    super(pages.address(), size, LiveResources.Kind.HOST_BYTES);
    this.pages = pages;
  }

  /// @throws TransferException if the kernel has no room
  public static HostSlab allocate(long size) {
    checkSize(size);
    return new HostSlab(HostReuse.PROCESS.map(size), size);
  }

  @Override
  void free() {
    HostReuse.PROCESS.free(pages);
  }

  /// Gives freed memory that is kept for the next slabs back to the kernel.
  public static void freeIdle() {
    boolean _ = HostReuse.PROCESS.freeIdle();
  }
}
