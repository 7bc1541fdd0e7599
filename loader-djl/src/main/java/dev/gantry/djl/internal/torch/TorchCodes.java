// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;

/// libtorch's numbers for dtypes, devices and layouts, as it reports them itself. Immutable.
public final class TorchCodes {
  private final Map<DType, Integer> dtypes;
  private final Map<Integer, DType> byCode = new HashMap<>();
  private final int cpu;
  private final int cuda;
  private final int strided;

  private TorchCodes(Map<DType, Integer> dtypes, int cpu, int cuda, int strided) {
    this.dtypes = dtypes;
    dtypes.forEach((dtype, code) -> byCode.put(code, dtype));
    this.cpu = cpu;
    this.cuda = cuda;
    this.strided = strided;
  }

  static TorchCodes read(NativeSymbols symbols) {
    // int32_t aoti_torch_dtype_<name>(void);
    Map<DType, MethodHandle> dtypeFunctions = new EnumMap<>(DType.class);
    for (DType dtype : DType.values()) {
      name(dtype)
          .ifPresent(
              name -> dtypeFunctions.put(dtype, number(symbols, "aoti_torch_dtype_" + name)));
    }
    // int32_t aoti_torch_device_type_<name>(void);
    MethodHandle cpu = number(symbols, "aoti_torch_device_type_cpu");
    MethodHandle cuda = number(symbols, "aoti_torch_device_type_cuda");
    // int32_t aoti_torch_layout_strided(void);
    MethodHandle strided = number(symbols, "aoti_torch_layout_strided");
    if (!symbols.missing().isEmpty()) {
      return new TorchCodes(Map.of(), 0, 0, 0);
    }
    Map<DType, Integer> dtypes = new EnumMap<>(DType.class);
    dtypeFunctions.forEach((dtype, function) -> dtypes.put(dtype, call(function)));
    return new TorchCodes(dtypes, call(cpu), call(cuda), call(strided));
  }

  /// libtorch's name for a dtype. Empty for those that DJL cannot hold in a tensor: FP8, for which DJL
  /// has no type, and those smaller than a byte.
  static Optional<String> name(DType dtype) {
    return switch (dtype) {
      case BOOL -> Optional.of("bool");
      case U8, U16, U32, U64 -> Optional.of("uint" + dtype.bits());
      case I8, I16, I32, I64 -> Optional.of("int" + dtype.bits());
      case F16, F32, F64 -> Optional.of("float" + dtype.bits());
      case BF16 -> Optional.of("bfloat16");
      case C64 -> Optional.of("complex64");
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          Optional.empty();
    };
  }

  int of(DType dtype) {
    Integer code = dtypes.get(dtype);
    if (code == null) {
      throw new MisuseException("a tensor cannot hold " + dtype + "; its bytes fit a tensor of U8");
    }
    return code;
  }

  /// The dtype with this number, or empty for one that only libtorch knows, such as complex128.
  Optional<DType> dtype(int code) {
    return Optional.ofNullable(byCode.get(code));
  }

  int deviceType(Device device) {
    return switch (device) {
      case Device.Host() -> cpu;
      case Device.Cuda(int _) -> cuda;
    };
  }

  /// The CPU is device -1: libtorch's "the only one".
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

  /// Elements between neighbours along each axis, for a tensor without gaps in C order. An axis of
  /// 0 counts as 1, as libtorch has it.
  ///
  /// @throws MisuseException if they do not fit a long
  public static long[] denseStrides(Shape shape) {
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
  public static long elements(Shape shape) {
    return shape.elements().orElseThrow(() -> tooManyElements(shape));
  }

  private static MisuseException tooManyElements(Shape shape) {
    return new MisuseException("the shape " + shape + " has too many elements");
  }

  /// @throws MisuseException if the strides are not the shape's, or the last element's bytes lie
  ///     past what an address can reach
  static void checkReach(DType dtype, Shape shape, long[] strides) {
    if (strides.length != shape.rank() || LongStream.of(strides).anyMatch(stride -> stride < 0)) {
      throw new MisuseException(
          "a tensor of "
              + shape
              + " must have one stride of 0 or more for each axis (was "
              + Arrays.toString(strides)
              + ")");
    }
    try {
      long reach = 1;
      for (int axis = 0; axis < strides.length; axis++) {
        long last = Math.max(0, shape.dimension(axis) - 1);
        reach = Math.addExact(reach, Math.multiplyExact(last, strides[axis]));
      }
      long _ = Math.multiplyExact(reach, Math.max(1, dtype.bits() / Byte.SIZE));
    } catch (ArithmeticException _) {
      throw new MisuseException("a tensor of " + dtype + " " + shape + " has too many bytes");
    }
  }

  private static MethodHandle number(NativeSymbols symbols, String function) {
    return symbols.required(function, FunctionDescriptor.of(JAVA_INT));
  }

  private static int call(MethodHandle function) {
    try {
      return (int) function.invokeExact();
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }
}
