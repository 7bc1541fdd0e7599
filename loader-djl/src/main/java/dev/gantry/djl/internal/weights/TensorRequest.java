// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Optional;

/// A tensor that a load makes an array of.
///
/// @param tensor or some rows of it
/// @param first the number of the first row
/// @param type the floating-point type that it becomes; empty for the stored one
/// @param change how the array gets that type; never [Casts.Kind#IMPOSSIBLE]
record TensorRequest(StoredTensor tensor, long first, Optional<DataType> type, Casts.Kind change) {
  /// @throws MisuseException if there is no such cast
  static TensorRequest of(StoredTensor tensor, Optional<DataType> type, Scales scales) {
    Casts.Kind change =
        type.isEmpty() || PyTorch.dataType(tensor.dtype()).equals(type)
            ? Casts.Kind.NONE
            : Casts.kind(tensor.dtype(), scales.has(tensor.name()));
    if (change == Casts.Kind.IMPOSSIBLE) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is " + tensor.dtype() + ", which cannot be cast");
    }
    return new TensorRequest(tensor, 0, type, change);
  }

  TensorRequest rows(long from, long to) {
    return new TensorRequest(tensor.rows(from, to), from, type, change);
  }

  boolean changes() {
    return change != Casts.Kind.NONE;
  }

  boolean isConverted() {
    return change == Casts.Kind.CONVERT;
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
