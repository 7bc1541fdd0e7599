// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.util.Optional;

/// Wraps memory as DLPack tensors, which other native libraries take over. Thread-safe.
///
/// Layout of `DLManagedTensor` (dlpack.h, version 0.8), 64 bytes:
///
/// | offset | field | |
/// | --- | --- | --- |
/// | 0 | `void *data` | |
/// | 8 | `DLDevice {int32 type; int32 id}` | 1 CPU, 2 CUDA |
/// | 16 | `int32 ndim` | |
/// | 20 | `DLDataType {uint8 code; uint8 bits; uint16 lanes}` | |
/// | 24 | `int64 *shape` | ours follows the struct |
/// | 32 | `int64 *strides` | ours follow the shape |
/// | 40 | `uint64 byte_offset` | |
/// | 48 | `void *manager_ctx` | the number of the release |
/// | 56 | `void (*deleter)(DLManagedTensor *)` | |
public final class DlPack {
  private static final long STRUCT_BYTES = 64;
  private static final long CONTEXT_OFFSET = 48;

  // void deleter(DLManagedTensor *self);
  private static final MemorySegment DELETER =
      NativeSymbols.upcall(MethodHandles.lookup(), "deleter", FunctionDescriptor.ofVoid(JAVA_LONG));

  private DlPack() {}

  /// Allocates a `DLManagedTensor`, dense in C order, which its consumer deletes.
  ///
  /// @param release runs once, when the consumer deletes the tensor
  /// @throws MisuseException if DLPack has no such dtype; `release` never runs then
  public static MemorySegment managed(
      long address, Device device, DType dtype, TensorShape shape, Runnable release) {
    long number = Releases.number();
    MemorySegment managed =
        managed(address, device, dtype, shape, TorchCodes.denseStrides(shape), number);
    Releases.handOver(number, release);
    return managed;
  }

  /// Returns a wrapper that calls `at::fromDLPack`, which libtorch exports up to version 2.10;
  /// empty if it is not exported. The function reports failure by a C++ exception, which would end
  /// the JVM, so [TorchLibrary] checks dtype, shape and address first.
  static Optional<TensorWrapper> wrapper(NativeSymbols symbols) {
    // at::Tensor at::fromDLPack(DLManagedTensor *src);
    // at::Tensor is not trivial, so the C++ ABI returns it through a hidden first argument:
    // at::Tensor *f(at::Tensor *result, DLManagedTensor *src);
    return symbols
        .optional("_ZN2at10fromDLPackEP15DLManagedTensor")
        .map(fromDlPack ->
            (address, device, dtype, shape, strides, release) -> {
              // The caller deletes this memory with C++ `delete`. glibc's operator new and delete
              // are malloc and free.
              MemorySegment tensor = NativeHeap.allocate(Long.BYTES);
              Cleanup.orUndo(
                  () -> {
                    MemorySegment managed =
                        managed(address, device, dtype, shape, strides, release);
                    long _ = fromDlPack.call(tensor.address(), managed.address());
                  },
                  () -> NativeHeap.free(tensor));
              return tensor.address();
            });
  }

  /// @param release the number of the release in [Releases]
  private static MemorySegment managed(
      long address, Device device, DType dtype, TensorShape shape, long[] strides, long release) {
    byte code = typeCode(dtype);
    long[] dimensions = shape.toArray();
    MemorySegment managed = NativeHeap.allocate(STRUCT_BYTES + 2L * dimensions.length * Long.BYTES);
    managed.asSlice(0, STRUCT_BYTES).fill((byte) 0);
    managed.set(JAVA_LONG, 0, address);
    switch (device) {
      case Device.Host() -> managed.set(JAVA_INT, 8, 1);
      case Device.Cuda(int ordinal) -> {
        managed.set(JAVA_INT, 8, 2);
        managed.set(JAVA_INT, 12, ordinal);
      }
    }
    managed.set(JAVA_INT, 16, dimensions.length);
    managed.set(JAVA_BYTE, 20, code);
    managed.set(JAVA_BYTE, 21, (byte) dtype.bits());
    managed.set(JAVA_SHORT, 22, (short) 1);
    long stridesOffset = STRUCT_BYTES + (long) dimensions.length * Long.BYTES;
    managed.set(ADDRESS, 24, managed.asSlice(STRUCT_BYTES));
    managed.set(ADDRESS, 32, managed.asSlice(stridesOffset));
    managed.set(JAVA_LONG, CONTEXT_OFFSET, release);
    managed.set(ADDRESS, 56, DELETER);
    MemorySegment.copy(dimensions, 0, managed, JAVA_LONG, STRUCT_BYTES, dimensions.length);
    MemorySegment.copy(strides, 0, managed, JAVA_LONG, stridesOffset, strides.length);
    return managed;
  }

  /// `DLDataTypeCode` of dlpack.h.
  private static byte typeCode(DType dtype) {
    return switch (dtype) {
      case I8, I16, I32, I64 -> 0;
      case U8, U16, U32, U64 -> 1;
      case F16, F32, F64 -> 2;
      case BF16 -> 4;
      case C64 -> 5;
      case BOOL -> 6;
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          throw new MisuseException("DLPack has no " + dtype);
    };
  }

  /// The consumer calls this from any thread.
  @SuppressWarnings("UnusedMethod") // native code calls it
  private static void deleter(long self) {
    MemorySegment managed = MemorySegment.ofAddress(self).reinterpret(STRUCT_BYTES);
    long release = managed.get(JAVA_LONG, CONTEXT_OFFSET);
    NativeHeap.free(managed);
    Releases.run(release);
  }
}
