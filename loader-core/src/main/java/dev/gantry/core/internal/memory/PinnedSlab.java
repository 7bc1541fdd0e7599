// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

/// Page-locked host memory, which a GPU reads and writes by itself while the CPU does other work.
public final class PinnedSlab extends CpuSlab {
  private final CudaContext context;
  private final HugePages pages;

  private PinnedSlab(CudaContext context, HugePages pages) {
    super(pages.address(), pages.size(), LiveResources.Kind.PINNED_BYTES);
    this.context = context;
    this.pages = pages;
  }

  /// @param size in bytes
  /// @throws dev.gantry.core.TransferException if the driver cannot pin that much
  public static PinnedSlab allocate(CudaContext context, long size) {
    checkSize(size);
    HugePages pages = HugePages.map(size);
    // Pinning would take the pages too, but one after the other.
    pages.touch();
    return Cleanup.orUndo(
        () -> {
          try (var _ = context.enter()) {
            context.driver().pin(pages.address(), pages.size());
          }
          return new PinnedSlab(context, pages);
        },
        pages::unmap);
  }

  @Override
  void free() {
    try (var _ = context.enter()) {
      context.driver().unpin(pages.address());
    }
    pages.unmap();
  }
}
