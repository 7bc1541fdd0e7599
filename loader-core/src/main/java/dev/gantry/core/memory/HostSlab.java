package dev.gantry.core.memory;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import java.lang.foreign.MemorySegment;

/// Ordinary memory of the CPU, page-aligned. The kernel gives pages when they are first touched.
public final class HostSlab extends Slab {
  /// From here on huge pages are asked for: a load then takes one page fault for 2 MiB instead of 512.
  private static final long HUGE_PAGE_BYTES = 2L << 20;

  private final long mappedAddress;
  private final long mappedSize;

  private HostSlab(long address, long size, long mappedAddress, long mappedSize) {
    super(address, size, LiveResources.Kind.HOST_BYTES);
    this.mappedAddress = mappedAddress;
    this.mappedSize = mappedSize;
  }

  /// @throws TransferException if the kernel has no room
  public static HostSlab allocate(long size) {
    checkSize(size);
    // A huge page must start at a multiple of its size, which mmap does not promise.
    boolean huge = size >= HUGE_PAGE_BYTES;
    long mappedSize = Math.addExact(size, huge ? HUGE_PAGE_BYTES : 0);
    long mapped =
        Libc.INSTANCE.mmap(
            mappedSize,
            Libc.PROT_READ | Libc.PROT_WRITE,
            Libc.MAP_PRIVATE | Libc.MAP_ANONYMOUS | Libc.MAP_NORESERVE,
            -1,
            0);
    if (mapped < 0) {
      throw new TransferException(
          "mmap", size + " bytes of host memory", Errno.failure((int) -mapped));
    }
    long address = mapped;
    if (huge) {
      address = (mapped + HUGE_PAGE_BYTES - 1) & -HUGE_PAGE_BYTES;
      // Advice only: a kernel without huge pages says EINVAL, and small pages serve.
      var _ = Libc.INSTANCE.madvise(address, size, Libc.MADV_HUGEPAGE);
    }
    return new HostSlab(address, size, mapped, mappedSize);
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
    int result = Libc.INSTANCE.munmap(mappedAddress, mappedSize);
    if (result < 0) {
      throw new TransferException("munmap", size() + " bytes", Errno.failure(-result));
    }
  }
}
