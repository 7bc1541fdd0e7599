// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.Optional;

/// Dtype and shape of an array.
///
/// @param dtype empty for one that only libtorch knows, such as complex128
public record ArrayKind(Optional<DType> dtype, TensorShape shape) {
  /// @throws dev.gantry.core.MisuseException if it is not an array of DJL's PyTorch engine
  public static ArrayKind of(NDArray array) {
    return new ArrayKind(TorchArrays.dtype(array), PyTorch.shape(array.getShape()));
  }

  /// Dtype and shape, as in `F32 [2, 3]`.
  @Override
  public String toString() {
    return dtype.map(DType::name).orElse("of an unknown type") + " " + shape;
  }
}
