package dev.gantry.core.memory;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import java.lang.foreign.MemorySegment;

/// Ordinary memory of the CPU, page-aligned. The kernel gives pages when they are first touched.
public final class HostSlab extends Slab {
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
    pages.unmap();
  }
}
