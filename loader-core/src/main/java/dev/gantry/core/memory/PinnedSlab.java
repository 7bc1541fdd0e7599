package dev.gantry.core.memory;

import dev.gantry.core.Device;
import java.lang.foreign.MemorySegment;

/// Page-locked memory of the CPU, from which and to which a GPU copies by itself while the CPU goes on.
public final class PinnedSlab extends Slab {
  private final CudaContext context;

  private PinnedSlab(CudaContext context, long address, long size) {
    super(address, size, LiveResources.Kind.PINNED_BYTES);
    this.context = context;
  }

  /// @throws dev.gantry.core.TransferException if the driver cannot pin that much
  public static PinnedSlab allocate(CudaContext context, long size) {
    checkSize(size);
    try (var _ = context.enter()) {
      return new PinnedSlab(context, context.driver().allocatePinned(size), size);
    }
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
      context.driver().freePinned(address);
    }
  }
}
