// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import static org.assertj.core.api.Assertions.assertThat;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.WrappedMemory;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class FiniteTest {
  @Test
  void valuesWhoseSumOverflowsAreFinite() {
    try (NDManager manager = NDManager.newBaseManager()) {
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
      arrays.put("large", manager.create(new float[] {3e38f, 3e38f}));
      assertThat(Finite.firstWithout(arrays)).isEmpty();
    }
  }

  @Test
  void arraysOfBrainFloatsAreSearched() {
    byte[] bytes = {(byte) 0x80, 0x3f, (byte) 0x80, 0x3f, (byte) 0x80, 0x7f};
    try (NDManager manager = NDManager.newBaseManager()) {
      WrappedMemory memory = new WrappedMemory();
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
      arrays.put("right", memory.wrap(manager, DType.BF16, TensorShape.of(2), bytes));
      assertThat(Finite.firstWithout(arrays)).isEmpty();
      arrays.put("wrong", memory.wrap(manager, DType.BF16, TensorShape.of(3), bytes));
      assertThat(Finite.firstWithout(arrays)).contains("wrong");
    }
  }

  @ParameterizedTest
  @ValueSource(floats = {Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY})
  void theFirstArrayWithAValueThatIsNotFiniteIsNamed(float value) {
    try (NDManager manager = NDManager.newBaseManager()) {
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
      arrays.put("right", manager.create(new float[] {1, -1}));
      arrays.put("wrong", manager.create(new float[] {1, value}));
      arrays.put("whole", manager.create(new int[] {1}));
      assertThat(Finite.firstWithout(arrays)).contains("wrong");
    }
  }
}
