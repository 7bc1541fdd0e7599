// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.util.Optional;

/// `torch_from_blob` of libtorch's stable C interface (`torch/csrc/stable/c/shim.h`), from 2.11 on.
record FromBlobWrapper(MemorySegment fromBlob, TorchCodes codes) implements TensorWrapper {
  private static final String FROM_BLOB = "torch_from_blob";

  // void deleter(void *data, void *ctx);
  private static final MemorySegment DELETER =
      NativeSymbols.upcall(
          MethodHandles.lookup(), "deleter", FunctionDescriptor.ofVoid(ADDRESS, ADDRESS));

  // AOTITorchError torch_from_blob(void *data, int64_t ndim, const int64_t *sizes, const int64_t
  // *strides,
  //     int64_t storage_offset, int32_t dtype, int32_t device_type, int32_t device_index,
  //     AtenTensorHandle *result, int32_t layout, const uint8_t *opaque_metadata,
  //     int64_t opaque_metadata_size, void (*deleter)(void *data, void *ctx), void *ctx);
  private static final MethodHandle CALL =
      Linker.nativeLinker()
          .downcallHandle(
              FunctionDescriptor.of(
                  JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT,
                  JAVA_INT, ADDRESS, JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS));

  static Optional<TensorWrapper> find(NativeSymbols symbols, TorchCodes codes) {
    return symbols
        .optional(FROM_BLOB)
        .map(function -> new FromBlobWrapper(function.symbol(), codes));
  }

  @Override
  public long wrap(
      long address, Device device, DType dtype, TensorShape shape, long[] strides, long release) {
    long[] dimensions = shape.toArray();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment result = arena.allocate(ADDRESS);
      int error =
          (int)
              CALL.invokeExact(
                  fromBlob,
                  MemorySegment.ofAddress(address),
                  (long) dimensions.length,
                  arena.allocateFrom(JAVA_LONG, dimensions),
                  arena.allocateFrom(JAVA_LONG, strides),
                  0L,
                  codes.of(dtype),
                  codes.deviceType(device),
                  TorchCodes.deviceIndex(device),
                  result,
                  codes.stridedLayout(),
                  MemorySegment.NULL,
                  0L,
                  DELETER,
                  MemorySegment.ofAddress(release));
      if (error != 0) {
        throw new TransferException(
            FROM_BLOB, dtype + " " + shape + " on " + device, new Failure.Torch(error));
      }
      return result.get(JAVA_LONG, 0);
    } catch (TransferException refused) {
      throw refused;
    } catch (Throwable fault) {
      throw NativeSymbols.broken(fault);
    }
  }

  /// libtorch calls this from any thread.
  @SuppressWarnings({"UnusedMethod", "UnusedVariable"}) // libtorch calls it, with what it has
  private static void deleter(MemorySegment data, MemorySegment context) {
    Releases.run(context.address());
  }
}
