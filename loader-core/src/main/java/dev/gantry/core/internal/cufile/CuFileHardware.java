// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CudaPointers;
import java.lang.foreign.MemorySegment;
import java.util.function.ToLongFunction;

/// Registers memory for a [RegistrationCache], by the CUDA driver and libcufile. Thread-safe.
public final class CuFileHardware implements RegistrationCache.Hardware {
  private final CuFile cuFile;
  private final ToLongFunction<Device.Cuda> budgetBytes;

  /// @param budgetBytes gives the most bytes to register at once on a device
  public CuFileHardware(CuFile cuFile, ToLongFunction<Device.Cuda> budgetBytes) {
    this.cuFile = cuFile;
    this.budgetBytes = budgetBytes;
  }

  /// Registers at most half of a device's BAR1 window: other programs use the window, too, and it
  /// holds cuFile's own bounce buffers.
  public static CuFileHardware withHalfOfBar1(CuFile cuFile) {
    return new CuFileHardware(cuFile, device -> barBytes(cuFile, device) / 2);
  }

  /// Returns the size of the BAR1 window, as libcufile says from 1.15 on, or as sysfs says.
  private static long barBytes(CuFile cuFile, Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    try {
      return cuFile
          .barSizeKib(device.ordinal())
          .toOptional()
          .map(kib -> kib << 10)
          .orElseGet(context::barBytes);
    } catch (TransferException _) {
      return context.barBytes();
    }
  }

  /// Checks the kind of the memory, since nvidia-fs pins only memory of `cuMemAlloc`.
  @Override
  public Availability<Allocation> allocation(Device.Cuda device, long address) {
    return CudaContext.of(device)
        .allocation(address)
        .then(found ->
            switch (found.kind()) {
              case ORDINARY ->
                  Availability.present(
                      new Allocation(found.base(), found.bytes(), found.bufferId()));
              case MANAGED, POOLED, MAPPED, PINNED_HOST ->
                  Availability.absent("cuFile does not register " + found.kind().words());
            });
  }

  @Override
  public long id(Device.Cuda device, long address) {
    try (var _ = CudaContext.of(device).enter()) {
      return CudaPointers.bufferId(address);
    }
  }

  @Override
  public long budgetBytes(Device.Cuda device) {
    return budgetBytes.applyAsLong(device);
  }

  @Override
  public void register(Device.Cuda device, MemorySegment region) {
    try (var _ = CudaContext.of(device).enter()) {
      CudaPointers.syncMemoryOperations(region.address());
      cuFile.registerBuffer(region);
    }
  }

  @Override
  public void deregister(Device.Cuda device, MemorySegment region) {
    try (var _ = CudaContext.of(device).enter()) {
      cuFile.deregisterBuffer(region);
    }
  }
}
