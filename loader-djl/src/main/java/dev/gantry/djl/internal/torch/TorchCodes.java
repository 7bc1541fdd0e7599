// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/// libtorch's numbers for dtypes, devices and layouts, as it reports them itself. Immutable.
public final class TorchCodes {
  // int32_t aoti_torch_dtype_<name>(void);
  private final Map<DType, Integer> codes = new EnumMap<>(DType.class);
  private final Map<Integer, DType> dtypes = new HashMap<>();
  // int32_t aoti_torch_device_type_<name>(void);
  private final int cpu;
  private final int cuda;
  // int32_t aoti_torch_layout_strided(void);
  private final int strided;

  TorchCodes(NativeSymbols symbols) {
    for (DType dtype : DType.values()) {
      name(dtype).ifPresent(name -> codes.put(dtype, symbols.constant("aoti_torch_dtype_" + name)));
    }
    codes.forEach((dtype, code) -> dtypes.put(code, dtype));
    cpu = symbols.constant("aoti_torch_device_type_cpu");
    cuda = symbols.constant("aoti_torch_device_type_cuda");
    strided = symbols.constant("aoti_torch_layout_strided");
  }

  /// Returns libtorch's name for a dtype, which is DJL's in lower case. It is empty for dtypes
  /// that DJL cannot hold in a tensor: FP8, for which DJL has no type, and dtypes smaller than a
  /// byte.
  private static Optional<String> name(DType dtype) {
    return PyTorch.dataType(dtype)
        .map(type -> type == DataType.BOOLEAN ? "bool" : type.name().toLowerCase(Locale.ROOT));
  }

  /// @throws MisuseException if no tensor holds the dtype
  int of(DType dtype) {
    Integer code = codes.get(dtype);
    if (code == null) {
      throw new MisuseException("a tensor cannot hold " + dtype + "; its bytes fit a tensor of U8");
    }
    return code;
  }

  /// Returns the dtype with this number; empty for a dtype that only libtorch knows, such as
  /// complex128.
  Optional<DType> dtype(int code) {
    return Optional.ofNullable(dtypes.get(code));
  }

  int deviceType(Device device) {
    return switch (device) {
      case Device.Host() -> cpu;
      case Device.Cuda(int _) -> cuda;
    };
  }

  /// Returns libtorch's index of a device. It is -1 for the CPU, libtorch's number for an only
  /// device.
  static int deviceIndex(Device device) {
    return switch (device) {
      case Device.Host() -> -1;
      case Device.Cuda(int ordinal) -> ordinal;
    };
  }

  /// @throws MisuseException for a kind of device that is neither the CPU nor CUDA
  Device device(int type, int index) {
    if (type == cpu) {
      return Device.HOST;
    }
    if (type == cuda) {
      return new Device.Cuda(Math.max(0, index));
    }
    throw new MisuseException(
        String.format(Locale.ROOT, "a tensor on a device of kind %d is not supported", type));
  }

  int stridedLayout() {
    return strided;
  }

  /// Returns the strides of a dense tensor in C order, in elements. An axis of size 0 counts as 1,
  /// as in libtorch.
  ///
  /// @throws MisuseException if a stride does not fit a long
  public static long[] denseStrides(TensorShape shape) {
    long[] strides = new long[shape.rank()];
    try {
      long step = 1;
      for (int axis = shape.rank() - 1; axis >= 0; axis--) {
        strides[axis] = step;
        step = Math.multiplyExact(step, Math.max(1, shape.dimension(axis)));
      }
    } catch (ArithmeticException _) {
      throw tooManyElements(shape);
    }
    return strides;
  }

  /// @throws MisuseException if their number does not fit a long
  public static long elements(TensorShape shape) {
    return shape.elements().orElseThrow(() -> tooManyElements(shape));
  }

  private static MisuseException tooManyElements(TensorShape shape) {
    return new MisuseException("the shape " + shape + " has too many elements");
  }

  /// @throws MisuseException if the number of strides is not the shape's rank, or if the last
  ///     element's bytes lie beyond the address space
  static void checkReach(DType dtype, TensorShape shape, long[] strides) {
    boolean fits = strides.length == shape.rank();
    try {
      long reach = 1;
      for (int axis = 0; fits && axis < strides.length; axis++) {
        long last = Math.max(0, shape.dimension(axis) - 1);
        reach = Math.addExact(reach, Math.multiplyExact(last, strides[axis]));
        fits = strides[axis] >= 0;
      }
      long _ = Math.multiplyExact(reach, Math.max(1, dtype.bits() / Byte.SIZE));
    } catch (ArithmeticException _) {
      fits = false;
    }
    if (!fits) {
      throw new MisuseException(
          ("a tensor of %s %s cannot have the strides %s: each axis takes one of 0 or more, and a"
                  + " long must hold the number of bytes")
              .formatted(dtype, shape, Arrays.toString(strides)));
    }
  }
}
