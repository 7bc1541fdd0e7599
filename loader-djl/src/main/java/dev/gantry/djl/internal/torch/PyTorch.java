// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import ai.djl.engine.Engine;
import ai.djl.engine.EngineException;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.pytorch.engine.PtEngine;
import ai.djl.pytorch.jni.LibUtils;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.CudaContext;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Finds the libtorch of DJL's PyTorch engine, and converts between Gantry's and DJL's dtypes,
/// devices and shapes. Thread-safe.
public final class PyTorch {
  private static final Map<DataType, DType> DTYPES = new EnumMap<>(DataType.class);

  static {
    for (DType dtype : DType.values()) {
      dataType(dtype).ifPresent(type -> DTYPES.put(type, dtype));
    }
  }

  private PyTorch() {}

  /// Returns the libtorch in the folder that DJL's engine loaded it from.
  ///
  /// @throws DeviceUnavailableException if there is no PyTorch engine, or its libtorch lacks a
  ///     function that Gantry needs
  /// @throws MisuseException if DJL is older than the version that Gantry was built for
  public static TorchLibrary library() {
    return Holder.FOUND.get();
  }

  /// Returns DJL's name for a dtype; empty for FP8 and for dtypes smaller than a byte.
  public static Optional<DataType> dataType(DType dtype) {
    return switch (dtype) {
      case BOOL -> Optional.of(DataType.BOOLEAN);
      case U8 -> Optional.of(DataType.UINT8);
      case I8 -> Optional.of(DataType.INT8);
      case I16 -> Optional.of(DataType.INT16);
      case U16 -> Optional.of(DataType.UINT16);
      case I32 -> Optional.of(DataType.INT32);
      case U32 -> Optional.of(DataType.UINT32);
      case I64 -> Optional.of(DataType.INT64);
      case U64 -> Optional.of(DataType.UINT64);
      case F16 -> Optional.of(DataType.FLOAT16);
      case BF16 -> Optional.of(DataType.BFLOAT16);
      case F32 -> Optional.of(DataType.FLOAT32);
      case F64 -> Optional.of(DataType.FLOAT64);
      case C64 -> Optional.of(DataType.COMPLEX64);
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          Optional.empty();
    };
  }

  /// @throws MisuseException for UNKNOWN and STRING
  public static DType dtype(DataType type) {
    DType dtype = DTYPES.get(type);
    if (dtype == null) {
      throw new MisuseException("no tensor holds elements of " + type);
    }
    return dtype;
  }

  /// Whether DJL's native code knows this type. On other types it ends the JVM, except on
  /// COMPLEX64, which it takes for FLOAT32 (measured: DJL 0.35.1).
  public static boolean isSafe(DataType type) {
    return switch (type) {
      case FLOAT32, FLOAT64, FLOAT16, UINT8, INT32, INT8, INT64, BOOLEAN -> true;
      case COMPLEX64, UNKNOWN, STRING, BFLOAT16, UINT64, UINT32, UINT16, INT16 -> false;
    };
  }

  /// @throws MisuseException for a device that is neither the CPU nor CUDA
  public static Device device(ai.djl.Device device) {
    if (device.isGpu()) {
      return new Device.Cuda(device.getDeviceId());
    }
    if (ai.djl.Device.Type.CPU.equals(device.getDeviceType())) {
      return Device.HOST;
    }
    throw new MisuseException("the device " + device + " is neither the CPU nor a GPU of CUDA");
  }

  /// Converts a device on which arrays are to be made.
  ///
  /// @throws MisuseException for a device that is neither the CPU nor CUDA
  /// @throws DeviceUnavailableException if the device is a GPU and DJL's libtorch is for the CPU
  ///     only
  public static Device arraysDevice(ai.djl.Device device) {
    Device target = device(device);
    if (target instanceof Device.Cuda cuda && !TorchLibrary.isForCuda(library().folder())) {
      // This throws if there is no such GPU.
      var _ = CudaContext.of(cuda);
      throw new DeviceUnavailableException(
          ("no array can be on %s: the libtorch that DJL took from %s is for the CPU, "
                  + "without %s (see docs/on-a-gpu.md)")
              .formatted(device, library().folder(), System.mapLibraryName("torch_cuda")));
    }
    return target;
  }

  /// @param name whose manager it is, as the error says it
  /// @throws MisuseException if the manager is closed
  public static void requireOpen(String name, NDManager manager) {
    if (!manager.isOpen()) {
      throw new MisuseException(name + " is closed: it takes no arrays");
    }
  }

  public static TensorShape shape(Shape shape) {
    return TensorShape.of(shape.getShape());
  }

  public static Shape djlShape(TensorShape shape) {
    return new Shape(shape.toArray());
  }

  private static final class Holder {
    /// Returns the library, or throws an error that says why there is none.
    static final Supplier<TorchLibrary> FOUND = find();

    private static Supplier<TorchLibrary> find() {
      try {
        Optional<String> refusal = DjlVersion.refusal();
        if (refusal.isPresent()) {
          return () -> {
            throw new MisuseException(refusal.get());
          };
        }
        // Getting the engine loads libtorch, and only then its folder is known.
        Engine _ = Engine.getEngine(PtEngine.ENGINE_NAME);
        TorchLibrary library = TorchLibrary.open(Path.of(LibUtils.getLibtorchPath()));
        return () -> library;
      } catch (EngineException
          | IllegalArgumentException
          | NoClassDefFoundError
          | DeviceUnavailableException absent) {
        return () -> {
          throw new DeviceUnavailableException(
              "DJL has no PyTorch engine: %s (see docs/on-a-gpu.md)".formatted(reasons(absent)));
        };
      }
    }

    /// Returns the messages of an error and of its causes. DJL's causes name the address from
    /// which it would load a missing libtorch.
    private static String reasons(Throwable absent) {
      return Stream.iterate(absent, Objects::nonNull, Throwable::getCause)
          .map(each -> String.valueOf(each.getMessage()))
          .distinct()
          .collect(Collectors.joining(": "));
    }
  }
}
