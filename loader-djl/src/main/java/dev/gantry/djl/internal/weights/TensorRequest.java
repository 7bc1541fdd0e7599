// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.spi.StoredTensor;
import java.util.Optional;

/// A tensor that a load makes an array of.
///
/// @param tensor or some rows of it
/// @param type the floating-point type that it becomes; empty for the stored one
/// @param change how the array gets that type
record TensorRequest(StoredTensor tensor, Optional<DataType> type, Change change) {
  /// Says how the loaded array gets its type.
  enum Change {
    NONE,
    /// libtorch casts it.
    CAST,
    /// Gantry's own code computes the values.
    CONVERSION
  }

  /// @throws dev.gantry.core.MisuseException if there is no such cast
  static TensorRequest of(StoredTensor tensor, Optional<DataType> type, Scales scales) {
    Change change =
        type.isEmpty()
            ? Change.NONE
            : switch (Casts.kind(tensor.dtype(), scales.has(tensor.name()))) {
              case CAST ->
                  PyTorch.dataType(tensor.dtype()).equals(type) ? Change.NONE : Change.CAST;
              case CONVERT -> Change.CONVERSION;
              case NONE -> Change.NONE;
              case IMPOSSIBLE -> throw Casts.impossible(tensor);
            };
    return new TensorRequest(tensor, type, change);
  }

  TensorRequest rows(long from, long to) {
    return new TensorRequest(tensor.rows(from, to), type, change);
  }

  boolean changes() {
    return change != Change.NONE;
  }

  boolean isConverted() {
    return change == Change.CONVERSION;
  }

  boolean isDouble() {
    return type.filter(DataType.FLOAT64::equals).isPresent();
  }

  /// The bytes of an array of the type that was asked for.
  long typeBytes() {
    return tensor.shape().elements().orElseThrow() * type.orElseThrow().getNumOfBytes();
  }

  /// How many bytes the tensor takes while it is loaded: a converted one also takes its result.
  long memoryBytes() {
    long bytes = tensor.bytes();
    return isConverted() ? bytes + bytes * type.orElseThrow().getNumOfBytes() : bytes;
  }
}
