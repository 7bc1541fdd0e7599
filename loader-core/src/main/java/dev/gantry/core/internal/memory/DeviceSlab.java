// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Memory of a CUDA device, aligned to 64 KiB as registration with cuFile needs: a GPU exposes its
/// memory to other PCIe devices in that unit.
public final class DeviceSlab extends Slab {
  private static final long REGISTRATION_ALIGNMENT_BYTES = 64 << 10;
  private static final long HEAP_STEP_BYTES = 1 << 20;

  private final CudaContext context;
  private final long allocated;
  private final long capacity;

  /// Takes the memory when this goes; null if the driver does.
  private final @Nullable DeviceMemoryReuse reuse;

  private DeviceSlab(
      CudaContext context,
      long allocated,
      long size,
      long capacity,
      @Nullable DeviceMemoryReuse reuse) {
    super(aligned(allocated), size, LiveResources.Kind.DEVICE_BYTES);
    this.context = context;
    this.allocated = allocated;
    this.capacity = capacity;
    this.reuse = reuse;
  }

  private static long aligned(long allocated) {
    return (allocated + REGISTRATION_ALIGNMENT_BYTES - 1) & -REGISTRATION_ALIGNMENT_BYTES;
  }

  /// @throws dev.gantry.core.TransferException if the device has no room
  public static DeviceSlab allocate(CudaContext context, long size) {
    return allocate(context, size, size, null);
  }

  /// @param capacity how much memory is allocated, `size` or more
  static DeviceSlab allocate(
      CudaContext context, long size, long capacity, @Nullable DeviceMemoryReuse reuse) {
    checkSize(size);
    try (var _ = context.enter()) {
      // The driver aligns large allocations to 2 MiB, but small ones only to 512 bytes: those need
      // extra room.
      long allocated = context.driver().allocateDevice(capacity);
      if (allocated % REGISTRATION_ALIGNMENT_BYTES != 0) {
        context.driver().freeDevice(allocated);
        allocated = context.driver().allocateDevice(capacity + REGISTRATION_ALIGNMENT_BYTES);
      }
      return over(context, allocated, size, capacity, reuse);
    }
  }

  static DeviceSlab over(
      CudaContext context,
      long allocated,
      long size,
      long capacity,
      @Nullable DeviceMemoryReuse reuse) {
    return new DeviceSlab(context, allocated, size, capacity, reuse);
  }

  @Override
  public Device device() {
    return context.device();
  }

  public CudaContext context() {
    return context;
  }

  /// The memory for libraries that take device pointers. The CPU must not access it.
  public MemorySegment deviceSegment() {
    return MemorySegment.ofAddress(address()).reinterpret(size());
  }

  /// Copies `bytes` from `offset` on to host memory, after all work queued on the default stream.
  public void copyToHost(long offset, MemorySegment target, long bytes) {
    Objects.checkFromIndexSize(offset, bytes, size());
    Objects.checkFromIndexSize(0, bytes, target.byteSize());
    if (target.isNative()) {
      try (var _ = context.enter()) {
        context.driver().copyToHost(target.address(), address() + offset, bytes);
      }
    } else {
      copyToHeap(offset, target, bytes);
    }
  }

  /// Copies native host memory to `offset`, and returns when the bytes are there.
  public void copyFromHost(long offset, MemorySegment source) {
    Objects.checkFromIndexSize(offset, source.byteSize(), size());
    try (var _ = context.enter()) {
      CudaDriver.Stream stream = context.driver().createStream();
      try {
        context
            .driver()
            .copyToDevice(address() + offset, source.address(), source.byteSize(), stream);
        context.driver().synchronize(stream);
      } finally {
        context.driver().destroy(stream);
      }
    }
  }

  /// Copies through native memory, which the garbage collector does not move.
  private void copyToHeap(long offset, MemorySegment target, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment step = arena.allocate(Math.max(1, Math.min(bytes, HEAP_STEP_BYTES)));
      for (long at = 0; at < bytes; at += HEAP_STEP_BYTES) {
        long length = Math.min(HEAP_STEP_BYTES, bytes - at);
        copyToHost(offset + at, step, length);
        MemorySegment.copy(step, 0, target, at, length);
      }
    }
  }

  @Override
  void copyWithin(long target, long source, long bytes) {
    try (var _ = context.enter()) {
      context.driver().copyOnDevice(target, source, bytes);
    }
  }

  /// `cuMemFree` waits for kernels that still read this memory.
  @Override
  void free() {
    if (reuse == null) {
      DeviceMemoryReuse.free(context, allocated);
    } else {
      reuse.giveBack(context, allocated, capacity);
    }
  }
}
