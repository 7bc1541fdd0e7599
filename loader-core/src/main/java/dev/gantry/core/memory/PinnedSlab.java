package dev.gantry.core.memory;

import dev.gantry.core.Device;
import java.lang.foreign.MemorySegment;

/// Page-locked memory of the CPU, from which and to which a GPU copies by itself while the CPU goes
/// on.
public final class PinnedSlab extends Slab {
  private final CudaContext context;
  private final HugePages pages;

  private PinnedSlab(CudaContext context, HugePages pages) {
    super(pages.address(), pages.size(), LiveResources.Kind.PINNED_BYTES);
    this.context = context;
    this.pages = pages;
  }

  /// @param size in bytes, less than 2 GiB
  /// @throws dev.gantry.core.TransferException if the driver cannot pin that much
  public static PinnedSlab allocate(CudaContext context, long size) {
    checkSize(size);
    HugePages pages = HugePages.map(size);
    boolean pinned = false;
    try (var _ = context.enter()) {
      context.driver().pin(segment(pages));
      pinned = true;
    } finally {
      if (!pinned) {
        pages.unmap();
      }
    }
    return new PinnedSlab(context, pages);
  }

  /// The memory as a segment. It does not keep the slab: hold a share while you use it.
  public MemorySegment segment() {
    return MemorySegment.ofAddress(address()).reinterpret(size());
  }

  @Override
  public Device device() {
    return Device.HOST;
  }

  @Override
  void copyWithin(long target, long source, long bytes) {
    copyOnHost(target, source, bytes);
  }

  @Override
  void free() {
    try (var _ = context.enter()) {
      context.driver().unpin(segment(pages));
    }
    pages.unmap();
  }

  private static MemorySegment segment(HugePages pages) {
    return MemorySegment.ofAddress(pages.address()).reinterpret(pages.size());
  }
}
