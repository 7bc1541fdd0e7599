// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.ndarray;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDArrays;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.ndarray.types.SparseFormat;
import ai.djl.nn.Activation;
import ai.djl.nn.core.Linear;
import ai.djl.pytorch.engine.PtNDArray;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.torch.Releases;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/// Most of these calls would end the process on an array of DJL's own, so a failed test may end
/// the JVM.
class GantryNDArrayTest {
  private final WrappedMemory memory = new WrappedMemory();
  private NDManager manager;

  @BeforeEach
  void open() {
    manager = NDManager.newBaseManager();
  }

  @AfterEach
  void nothingIsLeftBehind() {
    manager.close();
    assertThat(Releases.pending()).isZero();
  }

  static Stream<DType> held() {
    return Stream.of(DType.values()).filter(dtype -> PyTorch.dataType(dtype).isPresent());
  }

  @ParameterizedTest
  @MethodSource("held")
  void knowsItsTypeAndGivesItsBytes(DType dtype) {
    NDArray array = memory.count(manager, dtype, 2, 3);
    assertThat(array.getDataType()).isEqualTo(PyTorch.dataType(dtype).orElseThrow());
    assertThat(TorchArrays.dtype(array)).contains(dtype);
    assertThat(array.getDevice()).isEqualTo(manager.getDevice());
    assertThat(array.getShape()).isEqualTo(new Shape(2, 3));
    assertThat(array.toByteBuffer().remaining()).isEqualTo(6 * dtype.bits() / 8);
    assertThat(array.toByteBuffer(true)).isEqualTo(array.toByteBuffer(false));
  }

  @ParameterizedTest
  @MethodSource("held")
  void prints(DType dtype) {
    NDArray array = memory.count(manager, dtype, 2, 3);
    String type = array.getDataType().toString().toLowerCase(java.util.Locale.ROOT);
    assertThat(array.toString()).containsIgnoringCase(type).containsAnyOf("6", "false");
    assertThat(array.toDebugString()).containsIgnoringCase(type);
    assertThat(array.toDebugString(true)).containsIgnoringCase(type);
    array.close();
    assertThat(array.toString()).contains("closed");
  }

  @ParameterizedTest
  @MethodSource("held")
  void castsToEveryTypeAndBack(DType from) {
    NDArray array = memory.count(manager, from, 2, 3);
    float[] expected = array.toType(DataType.FLOAT32, false).toFloatArray();
    assertThat(expected)
        .isEqualTo(
            from == DType.BOOL ? new float[] {1, 0, 1, 0, 1, 0} : new float[] {1, 2, 3, 4, 5, 6});
    held()
        .filter(to -> to != DType.BOOL)
        .forEach(to -> {
          DataType type = PyTorch.dataType(to).orElseThrow();
          NDArray cast = array.toType(type, false);
          assertThat(cast.getDataType()).isEqualTo(type);
          assertThat(cast).isInstanceOf(GantryNDArray.class);
          assertThat(cast.getName()).isEqualTo("wrapped");
          assertThat(cast.toType(DataType.FLOAT32, true).toFloatArray()).isEqualTo(expected);
        });
    assertThatThrownBy(() -> array.toType(DataType.UNKNOWN, false))
        .isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> array.toType(DataType.STRING, false))
        .isInstanceOf(MisuseException.class);
  }

  @ParameterizedTest
  @MethodSource("held")
  void copies(DType dtype) {
    NDArray array = memory.count(manager, dtype, 2, 3);
    ByteBuffer bytes = array.toByteBuffer();
    NDArray duplicate = array.duplicate();
    NDArray cast = array.toType(array.getDataType(), true);
    NDArray moved = array.toDevice(Device.cpu(), true);
    assertThat(array.toDevice(manager.getDevice(), false)).isSameAs(array);
    assertThat(array.toType(array.getDataType(), false)).isSameAs(array);
    array.close();
    assertThat(memory.released).hasValue(1);
    for (NDArray copy : new NDArray[] {duplicate, cast, moved}) {
      assertThat(copy).isInstanceOf(GantryNDArray.class);
      assertThat(copy.getName()).isEqualTo("wrapped");
      assertThat(copy.toByteBuffer()).isEqualTo(bytes);
    }
  }

  @ParameterizedTest
  @MethodSource("held")
  void fillsOthersLikeIt(DType dtype) {
    NDArray array = memory.count(manager, dtype, 2, 3);
    NDArray ones = array.onesLike();
    NDArray zeros = array.zerosLike();
    assertThat(ones.getDataType()).isEqualTo(array.getDataType());
    assertThat(zeros.getDataType()).isEqualTo(array.getDataType());
    assertThat(ones.toType(DataType.FLOAT32, true).toFloatArray()).containsOnly(1);
    assertThat(zeros.toType(DataType.FLOAT32, true).toFloatArray()).containsOnly(0);
    assertThat(array.like().getShape()).isEqualTo(array.getShape());
  }

  @ParameterizedTest
  @MethodSource("held")
  void serializes(DType dtype) {
    NDArray array = memory.count(manager, dtype, 2, 3);
    assertThat(array.encode()).hasSizeGreaterThan(6 * dtype.bits() / 8);
  }

  @Test
  void arithmeticOfBf16StaysBf16() {
    NDArray array = memory.count(manager, DType.BF16, 4);
    NDArray result = array.mul(2).add(array).sub(1).neg();
    assertThat(result.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(result.toFloatArray()).containsExactly(-2, -5, -8, -11);
    assertThat(result.toArray()).containsExactly(-2f, -5f, -8f, -11f);
    array.addi(1).muli(array);
    assertThat(array.toFloatArray()).containsExactly(4, 9, 16, 25);
    assertThat(array.getFloat(2)).isEqualTo(16);
  }

  @Test
  void operationsOfF32AreDjlsOwn() {
    NDArray array = memory.count(manager, DType.F32, 4);
    assertThat(array.add(array).getClass()).isEqualTo(PtNDArray.class);
    assertThat(Activation.relu(array).getClass()).isEqualTo(PtNDArray.class);
    assertThat(array.reshape(2, 2).getClass()).isEqualTo(PtNDArray.class);
    assertThat(array.argMax().getClass()).isEqualTo(PtNDArray.class);
  }

  @Test
  void anOperandOfBf16MakesAGuardedResult() {
    NDArray integers = memory.count(manager, DType.I64, 4);
    NDArray product = integers.mul(memory.count(manager, DType.BF16, 4));
    assertThat(product.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(product.zerosLike().toFloatArray()).containsExactly(0, 0, 0, 0);
    NDArray table = memory.count(manager, DType.BF16, 5, 2);
    NDArray embedded =
        integers
            .getNDArrayInternal()
            .embedding(integers, table, SparseFormat.DENSE)
            .singletonOrThrow();
    assertThat(embedded).isInstanceOf(GantryNDArray.class);
    assertThat(embedded.softmax(1).toFloatArray()).hasSize(8);
  }

  @Test
  void integersOfAllWidths() {
    assertThat(memory.count(manager, DType.I16, 3).add(1).toShortArray())
        .containsExactly((short) 2, (short) 3, (short) 4);
    assertThat(memory.count(manager, DType.U16, 3).toUnsignedShortArray()).containsExactly(1, 2, 3);
    assertThat(memory.count(manager, DType.U32, 3).toUnsignedIntArray()).containsExactly(1, 2, 3);
    assertThat(memory.count(manager, DType.U64, 3).toLongArray()).containsExactly(1, 2, 3);
    assertThat(memory.count(manager, DType.U64, 3).toArray()).containsExactly(1L, 2L, 3L);
    assertThat(memory.count(manager, DType.U8, 3).toUint8Array()).containsExactly(1, 2, 3);
  }

  @Test
  void softmaxOfBf16() {
    NDArray array = memory.count(manager, DType.BF16, 3);
    NDArray softmax = array.softmax(0);
    assertThat(softmax.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(softmax.toFloatArray())
        .containsExactly(
            new float[] {0.0900306f, 0.2447285f, 0.6652409f},
            org.assertj.core.data.Offset.offset(2e-3f));
    assertThat(array.logSoftmax(0).getDataType()).isEqualTo(DataType.BFLOAT16);
    NDArray shorts = memory.count(manager, DType.I16, 3);
    assertThatThrownBy(() -> shorts.softmax(0)).isInstanceOf(MisuseException.class);
    assertThatThrownBy(() -> shorts.logSoftmax(0)).isInstanceOf(MisuseException.class);
  }

  @Test
  void operationsThatNameAType() {
    NDArray array = memory.count(manager, DType.I32, 3);
    NDArray hot = array.oneHot(4, DataType.BFLOAT16);
    assertThat(hot.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(hot.sum().toFloatArray()).containsExactly(3);
    NDArray product = array.cumProd(0, DataType.BFLOAT16);
    assertThat(product.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(product.toFloatArray()).containsExactly(1, 2, 6);
    assertThat(array.cumProd(0, null).toLongArray()).containsExactly(1, 2, 6);
  }

  @Test
  void viewsThatAreNotContiguous() {
    NDArray array = memory.count(manager, DType.BF16, 2, 3).transpose();
    assertThat(array.toFloatArray()).containsExactly(1, 4, 2, 5, 3, 6);
    assertThat(array.toByteBuffer(true).order(ByteOrder.nativeOrder()).getShort(2))
        .isEqualTo((short) 0x4080);
    assertThat(array.toType(DataType.BFLOAT16, true).toFloatArray())
        .containsExactly(1, 4, 2, 5, 3, 6);
    assertThat(array.get(new NDIndex("1")).toFloatArray()).containsExactly(2, 5);
  }

  @Test
  void aScalarComesWithAnotherManager() {
    NDArray scalar = memory.count(manager, DType.BF16);
    try (NDManager other = manager.newSubManager()) {
      NDArray copy = scalar.get(other, new NDIndex());
      assertThat(copy.getManager()).isSameAs(other);
      assertThat(copy.toFloatArray()).containsExactly(1);
    }
  }

  @Test
  void listsComeGuarded() {
    NDArray array = memory.count(manager, DType.BF16, 4);
    NDList parts = array.split(2);
    assertThat(parts).hasSize(2).allMatch(GantryNDArray.class::isInstance);
    assertThat(parts.get(1).toFloatArray()).containsExactly(3, 4);
    assertThat(NDArrays.concat(parts).softmax(0).getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(NDArrays.stack(parts).zerosLike().getShape()).isEqualTo(new Shape(2, 2));
  }

  @Test
  void blocksComputeInBf16() {
    NDArray input = memory.count(manager, DType.BF16, 1, 2);
    NDArray weight = memory.count(manager, DType.BF16, 3, 2);
    NDArray output = Activation.relu(Linear.linear(input, weight, null).singletonOrThrow());
    assertThat(output).isInstanceOf(GantryNDArray.class);
    assertThat(output.toFloatArray()).containsExactly(5, 11, 17);
    assertThat(output.softmax(1).toDevice(Device.cpu(), true).getDataType())
        .isEqualTo(DataType.BFLOAT16);
    NDArray scaled = output.getNDArrayInternal().rdiv(187);
    assertThat(scaled.getDataType()).isEqualTo(DataType.BFLOAT16);
    assertThat(scaled.getFloat(0, 1)).isEqualTo(17);
  }

  @Test
  void complexNumbersKeepTheirSize() {
    NDArray array = memory.count(manager, DType.C64, 2);
    assertThat(array.mul(array).toType(DataType.FLOAT32, false).toFloatArray())
        .containsExactly(1, 4);
    assertThat(array.real().toFloatArray()).containsExactly(1, 0, 2, 0);
    assertThat(array.toString()).contains("complex64 as pairs").contains("2., 0.");
  }

  @Test
  void setsItsValues() {
    NDArray array = memory.count(manager, DType.BF16, 4);
    array.set(new NDIndex("1:3"), 9);
    assertThat(array.toFloatArray()).containsExactly(1, 9, 9, 4);
    NDArray target = array.zerosLike();
    array.copyTo(target);
    assertThat(target.toFloatArray()).containsExactly(1, 9, 9, 4);
    array.set(ByteBuffer.wrap(new byte[] {(byte) 0x80, 0x3f, 0, 0, 0, 0, (byte) 0x80, 0x3f}));
    assertThat(array.toFloatArray()).containsExactly(1, 0, 0, 1);
    assertThat(memory.released).hasValue(1);
  }

  @Test
  void guardsAnArrayOfDjl() {
    NDArray plain = manager.create(new float[] {1.5f, 2.5f});
    plain.setName("plain");
    NDArray guarded = Guards.guard(plain);
    assertThat(guarded.getName()).isEqualTo("plain");
    assertThat(Guards.guard(guarded)).isSameAs(guarded);
    NDArray half = guarded.toType(DataType.BFLOAT16, false);
    assertThat(half.toFloatArray()).containsExactly(1.5f, 2.5f);
    guarded.close();
    assertThat(plain.isReleased()).isTrue();
    NDArray strings = manager.create(new String[] {"a"});
    assertThat(Guards.guard(strings)).isSameAs(strings);
  }

  @Test
  void internTakesAnothersMemoryAndType() {
    NDArray array = memory.count(manager, DType.BF16, 2);
    NDArray other = memory.count(manager, DType.I16, 2);
    array.intern(other);
    assertThat(memory.released).hasValue(1);
    assertThat(array.getDataType()).isEqualTo(DataType.INT16);
    assertThat(array.toShortArray()).containsExactly((short) 1, (short) 2);
    NDArray plain = manager.create(new float[] {7});
    array.intern(plain);
    assertThat(memory.released).hasValue(2);
    assertThat(array.toFloatArray()).containsExactly(7);
  }

  @Test
  void anArrayOfF32DoesNotBecomeOneOfBf16() {
    NDArray array = memory.count(manager, DType.F32, 2);
    NDArray other = memory.count(manager, DType.BF16, 2);
    assertThatThrownBy(() -> array.intern(other)).isInstanceOf(MisuseException.class);
    assertThat(other.toFloatArray()).containsExactly(1, 2);
  }

  @Test
  void gradientsFlowThroughTheCastToBf16() {
    NDArray weight = Guards.guard(manager.create(new float[] {1, 2, 3}));
    weight.setRequiresGradient(true);
    try (var collector = ai.djl.engine.Engine.getInstance().newGradientCollector()) {
      NDArray loss =
          weight.toType(DataType.BFLOAT16, true).mul(2).toType(DataType.FLOAT32, true).sum();
      collector.backward(loss);
    }
    assertThat(weight.getGradient().toFloatArray()).containsExactly(2, 2, 2);
  }

  /// The array that is taken over may own the buffer of the values.
  @Test
  void aScopeDoesNotCloseWhatAGuardedArrayHolds() {
    NDArray plain;
    NDArray guarded;
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      plain = manager.create(new float[] {1.5f});
      guarded = Guards.guard(plain);
      NDScope.unregister(guarded);
    }
    assertThat(plain.isReleased()).isFalse();
    assertThat(guarded.toFloatArray()).containsExactly(1.5f);
    guarded.close();
  }
}
