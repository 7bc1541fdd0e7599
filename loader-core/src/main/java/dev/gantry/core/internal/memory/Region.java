// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.natives.CudaDriver;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// A part of a slab that holds an extent's bytes.
///
/// @param slab null only where `length` is 0
/// @param offset bytes from the slab's start
/// @param length in bytes
public record Region(@Nullable Slab slab, long offset, long length) {
  /// The address of the first byte, on the slab's device; 0 for a region of no bytes.
  ///
  /// @throws MisuseException if the slab is closed
  public long address() {
    return slab == null ? 0 : slab.address() + offset;
  }

  /// Whether the memory must not be written to, because other processes read it.
  public boolean isReadOnly() {
    return slab != null && slab.isReadOnly();
  }

  /// Takes a share of the slab; running the returned action releases the share.
  public Runnable retain() {
    if (slab == null) {
      return () -> {};
    }
    Runnable release = slab::release;
    Slab _ = slab.retain();
    return release;
  }

  /// The `bytes` of this region from the offset `from` on.
  public Region slice(long from, long bytes) {
    Objects.checkFromIndexSize(from, bytes, length);
    return new Region(slab, offset + from, bytes);
  }

  /// Copies all bytes to host memory, after all work queued on the device's default stream.
  ///
  /// @param target host memory of at least `length` bytes
  public void copyTo(MemorySegment target) {
    switch (slab) {
      case null -> {}
      case CpuSlab cpu -> MemorySegment.copy(cpu.segment(), offset, target, 0, length);
      case DeviceSlab device -> device.copyToHost(offset, target, length);
    }
  }

  /// Copies all bytes to memory of the same device, and returns after the copy is complete.
  ///
  /// @param target memory of `length` bytes
  public void copyTo(Memory target) {
    switch (target) {
      case Memory.OnHost(MemorySegment segment) -> copyTo(segment);
      case Memory.OnDevice memory -> {
        CudaContext context = CudaContext.of(memory.device());
        try (var _ = context.enter()) {
          CudaDriver driver = context.driver();
          driver.copyOnDevice(memory.address(), address(), length, CudaDriver.Stream.DEFAULT);
          driver.synchronize(CudaDriver.Stream.DEFAULT);
        }
      }
    }
  }

  /// The region as memory for a write. The slab must stay allocated until the write has ended.
  public Memory source() {
    return switch (slab) {
      case null -> new Memory.OnHost(MemorySegment.ofArray(new byte[0]));
      case CpuSlab cpu -> new Memory.OnHost(cpu.segment().asSlice(offset, length));
      case DeviceSlab device -> new Memory.OnDevice(device.context().device(), address(), length);
    };
  }
}
