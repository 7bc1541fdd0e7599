// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.types.DataType;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.torch.PrivateField;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.TorchCodes;
import dev.gantry.djl.internal.torch.TorchLibrary;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The memory of an array, dense and in C order: the array's own memory if it is dense in C order,
/// otherwise a copy. The memory stays allocated until [#close], even if the array is closed
/// before. Later writes to the array change the memory, unless it is a copy.
///
/// On a GPU, kernels that write the values may still be queued: synchronise before you read the
/// memory without libtorch. Thread-safe.
///
/// @param address the address of the first element; it has no meaning if there are no bytes
/// @param share the action that releases the memory; null after [#close]
public record ArrayMemory(
    Device device,
    long address,
    long bytes,
    DType dtype,
    TensorShape shape,
    AtomicReference<@Nullable Runnable> share)
    implements AutoCloseable {
  /// The Java buffer that may have the memory of an array on the CPU; DJL drops it when the array
  /// is closed.
  private static final PrivateField<ByteBuffer> BUFFER =
      PrivateField.of(PtNDArray.class, "dataRef", "java.nio.ByteBuffer");

  /// @throws MisuseException if the array is sparse, of strings, of a type that [DType] does not
  ///     have, on a device that is neither the CPU nor a GPU of CUDA, or another engine's
  /// @throws dev.gantry.core.TransferException if libtorch refuses a copy
  public static ArrayMemory of(NDArray array) {
    return of(array, false);
  }

  /// Returns the array's own memory, so that it can be written.
  ///
  /// @throws MisuseException as [#of], and if the array is not dense in C order
  public static ArrayMemory inPlace(NDArray array) {
    TorchArrays.requireWritable(array);
    return of(array, true);
  }

  /// Whether [#inPlace] accepts the array, and the array has this type and shape.
  public static boolean holds(NDArray array, DType dtype, TensorShape shape) {
    long handle = TorchArrays.torchArray(array).getHandle();
    TorchLibrary torch = PyTorch.library();
    return !array.isSparse()
        && dtype != DType.C64
        && torch.dtype(handle).filter(dtype::equals).isPresent()
        && torch.shape(handle).equals(shape)
        && isDense(torch, handle, shape);
  }

  /// Takes one of several arrays, and has an error say which it was.
  public static ArrayMemory named(
      String name, NDArray array, Function<NDArray, ArrayMemory> taken) {
    String subject =
        "the array for '" + MisuseException.requireGiven("an array's name", name) + "'";
    MisuseException.requireGiven(subject, array);
    try {
      return taken.apply(array);
    } catch (MisuseException e) {
      throw new MisuseException(subject + ": " + e.getMessage());
    }
  }

  private static ArrayMemory of(NDArray array, boolean own) {
    PtNDArray torchArray = TorchArrays.torchArray(array);
    if (torchArray.isReleased()) {
      throw new MisuseException("the array is closed");
    }
    PrivateField.requireAll(List.of(BUFFER));
    if (array.getDataType() == DataType.STRING || array.isSparse()) {
      throw new MisuseException(described(array) + " must be dense and of numbers");
    }
    TorchLibrary torch = PyTorch.library();
    long tensor = torchArray.getHandle();
    DType dtype =
        torch
            .dtype(tensor)
            .orElseThrow(() ->
                new MisuseException(described(array) + " is of a type that Gantry does not know"));
    TensorShape shape = torch.shape(tensor);
    Device device = torch.device(tensor);
    // libtorch may conjugate complex numbers when they are read, and not in memory, so they are
    // always copied.
    boolean isPlain = dtype != DType.C64 && isDense(torch, tensor, shape);
    if (own && !isPlain) {
      throw new MisuseException(
          described(array)
              + (dtype == DType.C64
                  ? " is of complex numbers, which libtorch may keep conjugated"
                  : " is a view that does not lie densely in C order")
              + ": load into a new array and copy");
    }
    long handle = isPlain ? held(torch, tensor, own) : torch.move(tensor, device);
    Optional<ByteBuffer> buffer = isPlain ? buffer(torchArray) : Optional.empty();
    Runnable share =
        () -> {
          try {
            torch.delete(handle);
          } finally {
            // The tensor's memory may be the buffer's.
            Reference.reachabilityFence(buffer);
          }
        };
    return Cleanup.orUndo(
        () ->
            new ArrayMemory(
                device,
                torch.address(handle),
                Math.multiplyExact(TorchCodes.elements(shape), dtype.bits() / Byte.SIZE),
                dtype,
                shape,
                new AtomicReference<>(share)),
        share);
  }

  /// Returns a handle that keeps the memory. Memory that is written is needed only during one call, and thousands of
  /// arrays may be written at once, so a handle of the same tensor will do for it.
  private static long held(TorchLibrary torch, long tensor, boolean own) {
    return torch
        .operators()
        .filter(_ -> !own)
        .map(operators -> operators.detach(tensor))
        .orElseGet(() -> torch.share(tensor));
  }

  /// The array's bytes, valid until [#close].
  public Memory memory() {
    return switch (device) {
      case Device.Host _ -> new Memory.OnHost(MemorySegment.ofAddress(address).reinterpret(bytes));
      case Device.Cuda cuda -> new Memory.OnDevice(cuda, address, bytes);
    };
  }

  /// Releases the memory, which is freed if this was its last holder. Closing twice does nothing.
  @Override
  public void close() {
    Runnable held = share.getAndSet(null);
    if (held != null) {
      held.run();
    }
  }

  /// Whether a tensor is dense in C order. The stride of an axis with one element does not matter,
  /// and no stride does if there are no elements.
  private static boolean isDense(TorchLibrary torch, long handle, TensorShape shape) {
    long[] strides = torch.strides(handle);
    long[] dense = TorchCodes.denseStrides(shape);
    boolean isDense = true;
    for (int axis = 0; axis < strides.length; axis++) {
      isDense &= shape.dimension(axis) <= 1 || strides[axis] == dense[axis];
    }
    return isDense || TorchCodes.elements(shape) == 0;
  }

  private static Optional<ByteBuffer> buffer(PtNDArray array) {
    PtNDArray holder = array instanceof GantryNDArray ours ? ours.bufferHolder() : array;
    return BUFFER.find(holder);
  }

  private static String described(NDArray array) {
    String name = array.getName();
    return name == null ? "the array" : "the array '" + name + "'";
  }
}
