// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.types.DataType;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Tensors are passed to other libraries as plain memory.
@ExtendWith(NoLeaks.class)
class TensorMemoryTest {
  @TempDir private Path folder;
  private Weights weights;

  @BeforeEach
  void open() throws IOException {
    weights =
        Weights.open(
            new WeightsFile()
                .tensor("a", DType.F32, TensorShape.of(2, 3), 1, 2, 3, 4, 5, 6)
                .vector("b", DType.BF16, 7)
                .raw("tiny", DType.F8_E4M3, TensorShape.of(1), (byte) 1)
                .raw("empty", DType.F32, TensorShape.of(0, 3))
                .write(folder.resolve("model.safetensors")));
  }

  @Test
  void asSegmentsAndBuffers() {
    MemorySegment segment;
    try (TensorMemory memory = weights.loadMemory(LoadOptions.defaults())) {
      assertThat(memory.tensors().keySet()).containsExactlyElementsOf(weights.tensors().keySet());
      segment = memory.segment("a");
      assertThat(segment.address()).isEqualTo(memory.address("a"));
      FloatBuffer floats = segment.asByteBuffer().order(ByteOrder.nativeOrder()).asFloatBuffer();
      assertThat(floats.isDirect()).isTrue();
      assertThat(floats.get(5)).isEqualTo(6);
      assertThat(memory.segment("empty").byteSize()).isZero();
      assertThat(memory.report().bytes()).isPositive();
    }
    assertThatThrownBy(() -> segment.get(JAVA_FLOAT, 0)).isInstanceOf(IllegalStateException.class);
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void aDlpackTensorOutlivesTheMemory() throws Throwable {
    MemorySegment managed;
    try (TensorMemory memory = weights.loadMemory(LoadOptions.defaults())) {
      managed = memory.dlpack("a").reinterpret(64);
    }
    assertThat(managed.get(JAVA_INT, 8)).as("CPU").isEqualTo(1);
    assertThat(managed.get(JAVA_INT, 16)).as("axes").isEqualTo(2);
    assertThat(managed.get(JAVA_BYTE, 20)).as("float").isEqualTo((byte) 2);
    assertThat(managed.get(JAVA_BYTE, 21)).as("bits").isEqualTo((byte) 32);
    MemorySegment shape = managed.get(ADDRESS, 24).reinterpret(16);
    MemorySegment strides = managed.get(ADDRESS, 32).reinterpret(16);
    assertThat(List.of(shape.get(JAVA_LONG, 0), shape.get(JAVA_LONG, 8))).containsExactly(2L, 3L);
    assertThat(List.of(strides.get(JAVA_LONG, 0), strides.get(JAVA_LONG, 8)))
        .containsExactly(3L, 1L);
    assertThat(managed.get(ADDRESS, 0).reinterpret(24).get(JAVA_FLOAT, 20)).isEqualTo(6);
    assertThat(NoLeaks.held().slabs()).isPositive();
    Linker.nativeLinker()
        .downcallHandle(managed.get(ADDRESS, 56), FunctionDescriptor.ofVoid(ADDRESS))
        .invokeExact(managed);
    NoLeaks.assertNothingIsHeld();
  }

  @Test
  void misuse() {
    LoadOptions cast = LoadOptions.builder().optCast(DataType.FLOAT16).build();
    assertMisuse("optCast", () -> weights.loadMemory(cast));
    TensorMemory memory = weights.loadMemory(LoadOptions.defaults());
    assertMisuse("no tensor 'c'", () -> memory.segment("c"));
    assertMisuse("F8_E4M3", () -> memory.dlpack("tiny"));
    memory.close();
    memory.close();
    assertMisuse("closed", () -> memory.address("a"));
    NoLeaks.assertNothingIsHeld();
  }

  private static void assertMisuse(String words, ThrowingCallable call) {
    assertThatThrownBy(call).isInstanceOf(MisuseException.class).hasMessageContaining(words);
  }
}
