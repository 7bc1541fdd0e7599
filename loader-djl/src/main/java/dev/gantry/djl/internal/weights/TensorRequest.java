// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Optional;

/// A tensor that a load makes an array of.
///
/// @param tensor or some rows of it
/// @param first the number of the first row
/// @param type the floating-point type that it becomes; empty for the stored one
/// @param change how the array gets that type; never [Kind#IMPOSSIBLE]
record TensorRequest(StoredTensor tensor, long first, Optional<DataType> type, Kind change) {
  /// Says what a cast to a floating-point type does to a tensor.
  enum Kind {
    /// libtorch casts the array.
    CAST,
    /// Gantry's own code computes the values: libtorch, as DJL binds it, has no such type.
    CONVERT,
    /// Integers stay integers.
    NONE,
    /// There is no cast.
    IMPOSSIBLE
  }

  /// @param scaled whether the tensor has scales
  static Kind kind(DType dtype, boolean scaled) {
    return switch (dtype) {
      case F16, BF16, F32, F64 -> Kind.CAST;
      case I8 -> scaled ? Kind.CONVERT : Kind.NONE;
      case BOOL, U8, I16, U16, I32, U32, I64, U64, C64 -> Kind.NONE;
      case F8_E5M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2FNUZ -> Kind.CONVERT;
      case F4, F6_E2M3, F6_E3M2, F8_E8M0 -> Kind.IMPOSSIBLE;
    };
  }

  /// @throws MisuseException if there is no such cast
  static TensorRequest of(StoredTensor tensor, Optional<DataType> type, Scales scales) {
    Kind change =
        type.isEmpty() || PyTorch.dataType(tensor.dtype()).equals(type)
            ? Kind.NONE
            : kind(tensor.dtype(), scales.has(tensor.name()));
    if (change == Kind.IMPOSSIBLE) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is " + tensor.dtype() + ", which cannot be cast");
    }
    return new TensorRequest(tensor, 0, type, change);
  }

  TensorRequest rows(long from, long to) {
    return new TensorRequest(tensor.rows(from, to), from, type, change);
  }

  boolean changes() {
    return change != Kind.NONE;
  }

  boolean isConverted() {
    return change == Kind.CONVERT;
  }

  boolean isDouble() {
    return type.filter(DataType.FLOAT64::equals).isPresent();
  }

  /// How many bytes the tensor takes while it is loaded: a converted one also takes its result.
  long memoryBytes() {
    long bytes = tensor.bytes();
    return isConverted() ? bytes + bytes * type.orElseThrow().getNumOfBytes() : bytes;
  }
}
