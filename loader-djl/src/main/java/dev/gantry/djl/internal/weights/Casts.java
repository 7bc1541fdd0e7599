// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import java.util.Set;

/// Knows which casts exist.
public final class Casts {
  private static final Set<DataType> TARGETS =
      Set.of(DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT32, DataType.FLOAT64);

  private Casts() {}

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

  public static DataType requireTarget(DataType type) {
    if (!TARGETS.contains(type)) {
      throw new MisuseException(
          "tensors can be cast to FLOAT16, BFLOAT16, FLOAT32 or FLOAT64, not to " + type.name());
    }
    return type;
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

  /// Whether DJL has arrays of this dtype; the others come as raw bytes.
  static boolean isHeld(DType dtype) {
    return PyTorch.dataType(dtype).isPresent();
  }
}
