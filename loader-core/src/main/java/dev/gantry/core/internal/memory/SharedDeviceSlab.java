// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.ipc.CudaSharing;

/// Device memory that other processes map too. It is freed when the last process gives it up.
public final class SharedDeviceSlab extends DeviceSlab {
  private final boolean writable;

  private SharedDeviceSlab(CudaContext context, long address, long size, boolean writable) {
    super(context, address, size);
    this.writable = writable;
  }

  /// Maps the memory of a descriptor, which may be closed afterwards.
  ///
  /// @param size the size of the whole memory in bytes
  /// @throws dev.gantry.core.TransferException if the driver refuses
  public static SharedDeviceSlab map(
      CudaContext context, int descriptor, long size, boolean writable) {
    checkSize(size);
    try (var _ = context.enter()) {
      long address = CudaSharing.map(context.device().ordinal(), descriptor, size, writable);
      return new SharedDeviceSlab(context, address, size, writable);
    }
  }

  @Override
  public boolean isReadOnly() {
    return !writable;
  }

  @Override
  void freeSoon() {
    free();
  }

  /// Unmaps the memory, after the kernels that still read it.
  @Override
  void free() {
    context().synchronize();
    try (var _ = context().enter()) {
      CudaSharing.unmap(address, size());
    }
  }
}
