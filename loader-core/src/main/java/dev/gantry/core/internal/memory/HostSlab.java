// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.TransferException;

/// Ordinary host memory, page-aligned. The kernel provides pages when they are first touched.
public final class HostSlab extends CpuSlab {
  private final HugePages pages;

  private HostSlab(HugePages pages) {
    super(pages.address(), pages.size(), LiveResources.Kind.HOST_BYTES);
    this.pages = pages;
  }

  /// @throws TransferException if the kernel has no room
  public static HostSlab allocate(long size) {
    checkSize(size);
    return new HostSlab(HugePages.map(size));
  }

  @Override
  void free() {
    pages.unmap();
  }
}
