// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Memory of a CUDA device. It is aligned to 64 KiB, as registration with cuFile needs, because a
/// GPU exposes its memory to other PCIe devices in pages of 64 KiB.
public sealed class DeviceSlab extends Slab permits SharedDeviceSlab {
  private static final long REGISTRATION_ALIGNMENT_BYTES = 64 << 10;
  private static final long HEAP_STEP_BYTES = 1 << 20;

  private static final int OUT_OF_MEMORY = 2;

  /// An allocation of the driver that one slab after another uses. It is not freed between two
  /// slabs, since the driver clears freed memory, which takes bandwidth from loads, and since
  /// freeing waits for all work of the device.
  ///
  static final class Block {
    private final CudaDriver.DeviceMemory memory;
    private final long capacity;

    /// An event on the default stream, recorded when the last slab was freed; kernels that read
    /// that slab may still be queued before the event. Null for the first slab.
    private CudaDriver.@Nullable Event released;

    private Block(CudaDriver.DeviceMemory memory, long capacity) {
      this.memory = memory;
      this.capacity = capacity;
    }
  }

  private final CudaContext context;

  /// The memory of this slab; null where the subclass frees it.
  private final @Nullable Block block;

  /// @param asked the bytes that the slab counts as, though a block that is used again may be larger
  private DeviceSlab(CudaContext context, Block block, long size, long asked) {
    super(aligned(block.memory.address()), size, LiveResources.Kind.DEVICE_BYTES, asked, false);
    this.context = context;
    this.block = block;
  }

  /// Makes a slab of memory that several processes map. The subclass frees that memory.
  DeviceSlab(CudaContext context, long address, long size) {
    super(address, size, LiveResources.Kind.MAPPED_BYTES, size, true);
    this.context = context;
    this.block = null;
  }

  private static long aligned(long allocated) {
    return (allocated + REGISTRATION_ALIGNMENT_BYTES - 1) & -REGISTRATION_ALIGNMENT_BYTES;
  }

  /// Allocates a slab, from the pool of idle memory if a block there fits.
  ///
  /// @throws dev.gantry.core.TransferException if the device has too little memory
  public static DeviceSlab allocate(CudaContext context, long size) {
    return allocate(context, size, size);
  }

  /// @param capacity bytes of memory to take, `size` or more, so that later slabs of about this size fit it
  public static DeviceSlab allocate(CudaContext context, long size, long capacity) {
    return allocate(context, size, capacity, context::await);
  }

  /// @param stream the stream on which the caller queues all its work with the memory. The stream
  ///     waits for kernels that still read the memory's earlier slab, so the caller does not wait
  public static DeviceSlab allocate(CudaContext context, long size, CudaDriver.Stream stream) {
    return allocate(
        context,
        size,
        size,
        released -> {
          try (var _ = context.enter()) {
            context.driver().await(stream, released);
          }
        });
  }

  private static DeviceSlab allocate(
      CudaContext context, long size, long capacity, Consumer<CudaDriver.Event> order) {
    checkSize(size);
    return Cleanup.orUndo(
        () -> {
          Block idle = context.idleDevice().take(capacity);
          return idle == null ? allocateNew(context, capacity) : idle;
        },
        block -> {
          if (block.released != null) {
            order.accept(block.released);
          }
          return new DeviceSlab(context, block, size, capacity);
        },
        block -> free(context, block));
  }

  /// Allocates memory. If the device has too little, frees its idle memory, or waits until another
  /// thread has freed it, and tries again.
  private static Block allocateNew(CudaContext context, long bytes) {
    CudaDriver driver = context.driver();
    try (var _ = context.enter()) {
      return Cleanup.orUndo(
          () -> {
            try {
              return allocateAligned(driver, bytes);
            } catch (TransferException e) {
              boolean outOfMemory =
                  e.failure() instanceof Failure.Cuda cuda && cuda.code() == OUT_OF_MEMORY;
              boolean released = outOfMemory && context.idleDevice().awaitReleases();
              if (!outOfMemory || (!released && context.idleDevice().size() == 0)) {
                throw e;
              }
              context.idleDevice().free();
              return allocateAligned(driver, bytes);
            }
          },
          memory -> new Block(memory, bytes),
          driver::freeDevice);
    }
  }

  /// Allocates memory that holds the bytes at an aligned address. The driver aligns large
  /// allocations to 2 MiB, but small ones only to 512 bytes, so small ones are made larger.
  private static CudaDriver.DeviceMemory allocateAligned(CudaDriver driver, long bytes) {
    CudaDriver.DeviceMemory allocated = driver.allocateDevice(bytes);
    if (allocated.address() % REGISTRATION_ALIGNMENT_BYTES == 0) {
      return allocated;
    }
    driver.freeDevice(allocated);
    return driver.allocateDevice(bytes + REGISTRATION_ALIGNMENT_BYTES);
  }

  @Override
  public final Device device() {
    return context.device();
  }

  public final CudaContext context() {
    return context;
  }

  /// A segment with the device's address, for libraries that take device pointers. The CPU must not access it.
  public final MemorySegment deviceSegment() {
    return MemorySegment.ofAddress(address()).reinterpret(size());
  }

  /// Copies `bytes` from `offset` on to host memory, after all work queued on the default stream.
  public final void copyToHost(long offset, MemorySegment target, long bytes) {
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
  public final void copyFromHost(long offset, MemorySegment source) {
    Objects.checkFromIndexSize(offset, source.byteSize(), size());
    try (var _ = context.enter()) {
      CudaDriver driver = context.driver();
      CudaDriver.Stream used =
          Cleanup.orUndo(
              context.streams()::stream,
              stream -> {
                driver.copyToDevice(
                    address() + offset, source.address(), source.byteSize(), stream);
                driver.synchronize(stream);
                return stream;
              },
              driver::destroy);
      context.streams().giveBack(used);
    }
  }

  /// Copies to an array of the Java heap through native memory, since the garbage collector may move the array.
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
  void free() {
    giveBack(false);
  }

  @Override
  void freeSoon() {
    giveBack(true);
  }

  /// Gives the memory to the pool. If the event cannot be recorded, the memory is freed instead,
  /// since its next user could not wait for kernels that still read it.
  private void giveBack(boolean soon) {
    Block given = Objects.requireNonNull(block);
    boolean recorded = false;
    try (var _ = context.enter()) {
      CudaDriver.Event event = given.released;
      if (event == null) {
        event = context.streams().blockingSyncEvent();
        given.released = event;
      }
      context.driver().record(event, CudaDriver.Stream.DEFAULT);
      recorded = true;
    } catch (TransferException | OutOfMemoryError _) {
      // It is freed.
    }
    if (!recorded) {
      free(context, given);
    } else if (soon) {
      context.idleDevice().keepForNow(given, given.capacity);
    } else {
      context.idleDevice().keep(given, given.capacity);
    }
  }

  /// Frees memory, and the event with it. `cuMemFree` waits for kernels that still read it.
  static void free(CudaContext context, Block block) {
    CudaDriver.Event released = block.released;
    try (var _ = context.enter()) {
      try {
        context.driver().freeDevice(block.memory);
      } finally {
        if (released != null) {
          context.driver().destroy(released);
        }
      }
    }
  }
}
