// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TensorShape;

/// A native function that makes a tensor over memory that libtorch does not own. libtorch's
/// version decides which function it exports for this.
@FunctionalInterface
interface TensorWrapper {
  /// Makes an `at::Tensor` over the memory. When the last tensor or view over it dies,
  /// `Releases.run(release)` runs, on the thread where that happens.
  ///
  /// @param address not 0
  /// @param strides in elements, one an axis
  /// @return the address of a new `at::Tensor`, which the caller deletes
  /// @throws dev.gantry.core.TransferException if libtorch refuses
  long wrap(
      long address, Device device, DType dtype, TensorShape shape, long[] strides, long release);
}
