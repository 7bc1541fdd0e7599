// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.internal.quantised.QuantisedWeights;
import dev.gantry.formats.internal.weights.Dequantised;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import dev.gantry.formats.spi.StoredTensor;
import java.util.List;
import java.util.Optional;

/// A tensor of which a load makes an array.
///
/// @param tensor the tensor, or some rows of it
/// @param first the number of the first row
/// @param type the floating-point type of the array; empty for the stored type
/// @param change how the array gets that type; never [Kind#IMPOSSIBLE]
record TensorRequest(StoredTensor tensor, long first, Optional<DataType> type, Kind change) {
  /// How a tensor gets a floating-point type.
  enum Kind {
    /// libtorch casts the array.
    CAST,
    /// Gantry's own code computes the values, because libtorch, as DJL binds it, lacks the stored
    /// type.
    CONVERT,
    /// The tensor keeps its type, for example because it has integers.
    NONE,
    /// The tensor cannot be cast.
    IMPOSSIBLE
  }

  static Kind kind(StoredTensor tensor) {
    if (tensor.encoding() instanceof Encoding.Quantised) {
      return Kind.CONVERT;
    }
    return switch (tensor.dtype()) {
      case F16, BF16, F32, F64 -> Kind.CAST;
      case BOOL, U8, I8, I16, U16, I32, U32, I64, U64, C64 -> Kind.NONE;
      case F8_E5M2, F8_E4M3, F8_E4M3FNUZ, F8_E5M2FNUZ -> Kind.CONVERT;
      case F4, F6_E2M3, F6_E3M2, F8_E8M0 -> Kind.IMPOSSIBLE;
    };
  }

  /// @throws MisuseException if there is no such cast
  static TensorRequest of(StoredTensor tensor, Optional<DataType> type) {
    Kind kind = kind(tensor);
    if (type.isEmpty() || (kind != Kind.CONVERT && PyTorch.dataType(tensor.dtype()).equals(type))) {
      return new TensorRequest(tensor, 0, type, Kind.NONE);
    }
    if (kind == Kind.IMPOSSIBLE) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is " + tensor.dtype() + ", which cannot be cast");
    }
    boolean codes = kind == Kind.CONVERT && !(tensor.encoding() instanceof Encoding.Quantised);
    return new TensorRequest(codes ? QuantisedWeights.unscaled(tensor) : tensor, 0, type, kind);
  }

  /// The stored tensors that are read for this request.
  List<StoredTensor> inputs() {
    return isConverted() && tensor.encoding() instanceof Encoding.Quantised quantised
        ? quantised.inputs().stream().map(QuantisedInput::tensor).toList()
        : List.of(tensor);
  }

  /// The computation of the values from the inputs.
  Dequantisation dequantisation() {
    return Dequantised.of(tensor.shape(), (Encoding.Quantised) tensor.encoding(), target());
  }

  /// The type of a conversion's results. It is F32 if F64 is asked for, since F32 holds all values
  /// of the stored type.
  DType target() {
    return isDouble() ? DType.F32 : PyTorch.dtype(type.orElseThrow());
  }

  /// How many bytes are read.
  long readBytes() {
    return inputs().stream().mapToLong(StoredTensor::bytes).sum();
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

  /// How many bytes the tensor takes while it is loaded. For a converted tensor, the bytes of the
  /// result are added.
  long memoryBytes() {
    return readBytes() + (isConverted() ? dequantisation().targetBytes() : 0);
  }
}
