// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.util.passthrough.PassthroughNDArray;
import dev.gantry.core.DType;
import dev.gantry.core.Device;
import dev.gantry.core.Memory;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.Releases;
import dev.gantry.djl.internal.torch.Torch;
import java.lang.foreign.MemorySegment;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ArrayMemoryTest {
  private final WrappedMemory wrapped = new WrappedMemory();

  @AfterEach
  void nothingIsLeftBehind() {
    assertThat(Releases.pending()).isZero();
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void ofEveryTypeThatATensorHolds(DType dtype) {
    if (PyTorch.dataType(dtype).isEmpty()) {
      return;
    }
    try (NDManager manager = NDManager.newBaseManager();
        NDArray array = wrapped.count(manager, dtype, 2, 3);
        ArrayMemory memory = ArrayMemory.of(array)) {
      assertThat(memory.dtype()).isEqualTo(dtype);
      assertThat(memory.shape()).isEqualTo(TensorShape.of(2, 3));
      assertThat(memory.bytes()).isEqualTo(6L * dtype.bits() / Byte.SIZE);
      assertThat(memory.device())
          .isEqualTo(
              manager.getDevice().isGpu()
                  ? new Device.Cuda(manager.getDevice().getDeviceId())
                  : Device.HOST);
      if (dtype != DType.C64) {
        assertThat(memory.address()).isEqualTo(Torch.LIBRARY.address(handle(array)));
      }
    }
    assertThat(wrapped.released).hasValue(1);
  }

  @Test
  void complexNumbersAreAsTheyRead() {
    try (NDManager manager = NDManager.newBaseManager();
        NDArray pairs = manager.create(new float[] {1, 2, 3, 4}, new Shape(2, 2));
        ArrayMemory memory = ArrayMemory.of(pairs.complex().conj())) {
      assertThat(memory.dtype()).isEqualTo(DType.C64);
      assertThat(memory.shape()).isEqualTo(TensorShape.of(2));
      assertThat(floats(memory)).containsExactly(1, -2, 3, -4);
    }
  }

  @Test
  void outlivesItsArrayAndItsManager() {
    ArrayMemory memory;
    try (NDManager manager = NDManager.newBaseManager();
        NDArray array = wrapped.count(manager, DType.F32, 4)) {
      memory = ArrayMemory.of(array);
    }
    assertThat(wrapped.released).hasValue(0);
    assertThat(floats(memory)).containsExactly(1, 2, 3, 4);
    memory.close();
    assertThat(wrapped.released).hasValue(1);
    memory.close();
    assertThat(wrapped.released).hasValue(1);
  }

  @Test
  void theArrayOutlivesTheMemory() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray array = wrapped.count(manager, DType.F32, 4);
      ArrayMemory.of(array).close();
      assertThat(wrapped.released).hasValue(0);
      assertThat(array.toFloatArray()).containsExactly(1, 2, 3, 4);
    }
  }

  @Test
  void aViewInARowIsNotCopied() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray array = wrapped.count(manager, DType.F32, 3, 4);
      try (ArrayMemory memory = ArrayMemory.of(array.get(new NDIndex("1:")))) {
        assertThat(memory.address()).isEqualTo(Torch.LIBRARY.address(handle(array)) + 16);
        assertThat(memory.shape()).isEqualTo(TensorShape.of(2, 4));
        assertThat(floats(memory)).containsExactly(5, 6, 7, 8, 9, 10, 11, 12);
      }
      // An axis of one element may have any stride.
      try (ArrayMemory memory = ArrayMemory.of(array.get(new NDIndex("0:1")).transpose())) {
        assertThat(memory.address()).isEqualTo(Torch.LIBRARY.address(handle(array)));
        assertThat(memory.shape()).isEqualTo(TensorShape.of(4, 1));
      }
    }
  }

  @Test
  void aViewWithGapsIsCopiedInOrder() {
    try (NDManager manager = NDManager.newBaseManager()) {
      NDArray array = wrapped.count(manager, DType.F32, 2, 3);
      ArrayMemory columns = ArrayMemory.of(array.get(new NDIndex(":, 1")));
      ArrayMemory transposed = ArrayMemory.of(array.transpose());
      array.close();
      assertThat(floats(columns)).containsExactly(2, 5);
      assertThat(transposed.shape()).isEqualTo(TensorShape.of(3, 2));
      assertThat(floats(transposed)).containsExactly(1, 4, 2, 5, 3, 6);
      columns.close();
      transposed.close();
    }
    assertThat(wrapped.released).hasValue(1);
  }

  @Test
  void scalarsAndNothing() {
    try (NDManager manager = NDManager.newBaseManager();
        ArrayMemory scalar = ArrayMemory.of(wrapped.count(manager, DType.F32));
        ArrayMemory empty = ArrayMemory.of(wrapped.count(manager, DType.BF16, 2, 0, 3))) {
      assertThat(floats(scalar)).containsExactly(1);
      assertThat(empty.bytes()).isZero();
      assertThat(empty.shape()).isEqualTo(TensorShape.of(2, 0, 3));
    }
  }

  /// DJL lets an array use the memory of a Java buffer, which the garbage collector frees after
  /// the array is closed.
  @Test
  void holdsTheJavaBufferThatAnArrayLiesIn() {
    try (NDManager manager = NDManager.newBaseManager(ai.djl.Device.cpu())) {
      assertBufferIsHeld(manager, false);
      assertBufferIsHeld(manager, true);
    }
  }

  @Test
  void refusesWhatHasNoRowOfNumbers() {
    try (NDManager manager = NDManager.newBaseManager()) {
      assertRefused(manager.create("words"), "strings");
      NDArray sparse = manager.create(new float[] {0, 1}).toSparse(SparseFormat.COO);
      assertRefused(sparse, "sparse");
      assertRefused(manager.create(new double[] {1, 2}).fft(2), "complex128");
    }
    assertThatThrownBy(() -> ArrayMemory.of(new PassthroughNDArray("no array")))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("PyTorch");
  }

  private static void assertBufferIsHeld(NDManager manager, boolean guarded) {
    ByteBuffer buffer = ByteBuffer.allocateDirect(16).order(ByteOrder.nativeOrder());
    buffer.asFloatBuffer().put(new float[] {1, 2, 3, 4});
    WeakReference<ByteBuffer> reference = new WeakReference<>(buffer);
    NDArray array = manager.create(buffer, new Shape(4), DataType.FLOAT32);
    buffer = null;
    if (guarded) {
      array = Guards.guard(array);
    }
    try (ArrayMemory memory = ArrayMemory.of(array)) {
      array.close();
      System.gc();
      assertThat(reference.get()).isNotNull();
      assertThat(floats(memory)).containsExactly(1, 2, 3, 4);
    }
  }

  private static void assertRefused(NDArray array, String name) {
    array.setName(name);
    assertThatThrownBy(() -> ArrayMemory.of(array))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("'" + name + "'");
  }

  private static float[] floats(ArrayMemory memory) {
    float[] floats = new float[Math.toIntExact(memory.bytes() / Float.BYTES)];
    Source source =
        switch (memory.device()) {
          case Device.Host _ ->
              new Memory.OnHost(
                  MemorySegment.ofAddress(memory.address()).reinterpret(memory.bytes()));
          case Device.Cuda cuda -> new Memory.OnDevice(cuda, memory.address(), memory.bytes());
        };
    GantrySession.shared().copy(source, MemorySegment.ofArray(floats));
    return floats;
  }

  private static long handle(NDArray array) {
    return ((PtNDArray) array).getHandle();
  }
}
