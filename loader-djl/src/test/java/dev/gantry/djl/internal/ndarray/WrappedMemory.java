// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.djl.internal.torch.TorchCodes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Memory outside the heap, or of a GPU, from which arrays are made; counts how often it was
/// released.
public final class WrappedMemory {
  public final AtomicInteger released = new AtomicInteger();

  /// Makes an array of the numbers 1, 2, 3… as elements of `dtype`; a C64 array has them as real
  /// parts.
  public NDArray count(NDManager manager, DType dtype, long... dimensions) {
    TensorShape shape = TensorShape.of(dimensions);
    int elements = Math.toIntExact(shape.elements().orElseThrow());
    ByteBuffer bytes =
        ByteBuffer.allocate(elements * dtype.bits() / Byte.SIZE).order(ByteOrder.nativeOrder());
    for (int i = 1; i <= elements; i++) {
      put(bytes, dtype, i);
    }
    return wrap(manager, dtype, shape, bytes.array());
  }

  /// Makes an array over memory on the manager's device.
  public NDArray wrap(NDManager manager, DType dtype, TensorShape shape, byte[] bytes) {
    ai.djl.Device place = manager.getDevice();
    return place.isGpu()
        ? wrapOnDevice(manager, new Device.Cuda(place.getDeviceId()), dtype, shape, bytes)
        : wrapOnHost(manager, dtype, shape, bytes);
  }

  /// Makes an array over memory that is dense in C order.
  static NDArray wrap(
      NDManager manager,
      long address,
      Device device,
      DType dtype,
      TensorShape shape,
      @Nullable String name,
      Runnable release) {
    return TorchArrays.wrap(
        manager,
        address,
        device,
        dtype,
        shape,
        TorchCodes.denseStrides(shape),
        name,
        false,
        release);
  }

  private NDArray wrapOnHost(NDManager manager, DType dtype, TensorShape shape, byte[] bytes) {
    Arena arena = Arena.ofShared();
    MemorySegment memory = arena.allocate(Math.max(1, bytes.length), 64);
    MemorySegment.copy(MemorySegment.ofArray(bytes), 0, memory, 0, bytes.length);
    return wrap(
        manager,
        memory.address(),
        Device.HOST,
        dtype,
        shape,
        "wrapped",
        () -> {
          memory.fill((byte) 0x7f);
          arena.close();
          released.incrementAndGet();
        });
  }

  private NDArray wrapOnDevice(
      NDManager manager, Device.Cuda device, DType dtype, TensorShape shape, byte[] bytes) {
    CudaContext context = CudaContext.of(device);
    DeviceSlab slab = DeviceSlab.allocate(context, Math.max(1, bytes.length));
    try (Arena arena = Arena.ofConfined();
        var _ = context.enter()) {
      MemorySegment copy = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
      CudaDriver driver = context.driver();
      driver.copyToDevice(slab.address(), copy.address(), bytes.length, CudaDriver.Stream.DEFAULT);
      driver.synchronizeContext();
    }
    return wrap(
        manager,
        slab.address(),
        device,
        dtype,
        shape,
        "wrapped",
        () -> {
          slab.release();
          released.incrementAndGet();
        });
  }

  private static void put(ByteBuffer bytes, DType dtype, int value) {
    switch (dtype) {
      case BOOL -> bytes.put((byte) (value % 2));
      case U8, I8 -> bytes.put((byte) value);
      case I16, U16 -> bytes.putShort((short) value);
      case F16 -> bytes.putShort(Float.floatToFloat16(value));
      case BF16 -> bytes.putShort((short) (Float.floatToRawIntBits(value) >>> 16));
      case I32, U32 -> bytes.putInt(value);
      case F32 -> bytes.putFloat(value);
      case F64 -> bytes.putDouble(value);
      case I64, U64 -> bytes.putLong(value);
      case C64 -> bytes.putFloat(value).putFloat(0);
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          throw new IllegalArgumentException(dtype.name());
    }
  }
}
