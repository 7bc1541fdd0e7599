// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.ipc.CudaSharing;

/// Device memory that other processes map too. The driver frees it when the last process has
/// unmapped it.
public final class SharedDeviceSlab extends DeviceSlab {
  private final boolean writable;

  private SharedDeviceSlab(CudaContext context, long address, long size, boolean writable) {
    super(context, address, size);
    this.writable = writable;
  }

  /// Maps the memory that a file descriptor stands for. The caller may close the descriptor
  /// afterwards.
  ///
  /// @param size the size of the whole memory in bytes
  /// @throws dev.gantry.core.TransferException if the driver refuses
  public static SharedDeviceSlab map(
      CudaContext context, int descriptor, long size, boolean writable) {
    checkSize(size);
    try (var _ = context.enter()) {
      return Cleanup.orUndo(
          () -> CudaSharing.map(context.device().ordinal(), descriptor, size, writable),
          address -> new SharedDeviceSlab(context, address, size, writable),
          address -> CudaSharing.unmap(address, size));
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

  /// Waits for the kernels that may still read the memory, then unmaps it.
  @Override
  void free() {
    context().synchronize();
    try (var _ = context().enter()) {
      CudaSharing.unmap(address, size());
    }
  }
}
