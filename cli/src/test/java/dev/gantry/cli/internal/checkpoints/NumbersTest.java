// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

/// Differences of tensors of several types, and of values that are not numbers.
class NumbersTest {
  private static double difference(float[] values, DType otherType, MemorySegment others) {
    Extent extent = new Extent(Path.of("file"), 0, 4L * values.length);
    StoredTensor tensor = new StoredTensor("t", DType.F32, TensorShape.of(values.length), extent);
    return Numbers.maxDifference(tensor, MemorySegment.ofArray(values), otherType, others)
        .orElseThrow();
  }

  @Test
  void notANumberEqualsOnlyItself() {
    float[] values = {1, Float.NaN, Float.POSITIVE_INFINITY};
    assertThat(difference(values, DType.F32, MemorySegment.ofArray(values.clone()))).isZero();
    float[] others = {1, 2, Float.POSITIVE_INFINITY};
    assertThat(difference(values, DType.F32, MemorySegment.ofArray(others))).isNaN();
    assertThat(difference(others, DType.F32, MemorySegment.ofArray(values))).isNaN();
  }

  @Test
  void eachTypeHasItsOwnSize() {
    double[] others = {1, 2.5, 3};
    assertThat(difference(new float[] {1, 2, 3}, DType.F64, MemorySegment.ofArray(others)))
        .isEqualTo(0.5);
  }
}
