package dev.gantry.djl.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Shape;

/// The ways into libtorch for memory that it does not own. Which one there is depends on its
/// version.
sealed interface TensorWrapper permits DlPackWrapper, FromBlobWrapper {
  /// The native function, as `gantry doctor` shows it.
  String function();

  /// Makes an `at::Tensor` over the memory. When the last tensor or view over it dies, on whatever
  /// thread, `Releases.run(release)` runs.
  ///
  /// @param address not 0
  /// @param strides in elements, one an axis
  /// @return the address of a new `at::Tensor`, which the caller deletes
  /// @throws dev.gantry.core.TransferException if libtorch refuses
  long wrap(long address, Device device, DType dtype, Shape shape, long[] strides, long release);
}
