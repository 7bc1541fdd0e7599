// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.spi.StoredTensor;

/// Which casts exist.
final class Casts {
  private Casts() {}

  static DataType requireTarget(DataType type) {
    return switch (type) {
      case FLOAT16, BFLOAT16, FLOAT32, FLOAT64 -> type;
      case UINT8,
          INT32,
          INT8,
          INT64,
          BOOLEAN,
          COMPLEX64,
          UNKNOWN,
          STRING,
          UINT64,
          UINT32,
          UINT16,
          INT16 ->
          throw new MisuseException(
              "tensors can be cast to FLOAT16, BFLOAT16, FLOAT32 or FLOAT64, not to "
                  + type.name());
    };
  }

  /// Whether a cast to a floating-point type concerns this tensor.
  ///
  /// @throws MisuseException if it would, and cannot be done
  static boolean concerns(StoredTensor tensor) {
    return switch (tensor.dtype()) {
      case F16, BF16, F32, F64 -> true;
      case BOOL, U8, I8, I16, U16, I32, U32, I64, U64, C64 -> false;
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          throw new MisuseException(
              "tensor '" + tensor.name() + "' is " + tensor.dtype() + ", which DJL cannot cast");
    };
  }

  /// Whether DJL has arrays of this dtype; the others come as raw bytes.
  static boolean isHeld(DType dtype) {
    return PyTorch.dataType(dtype).isPresent();
  }
}
