// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import org.junit.jupiter.api.Test;

class TensorColumnTest {
  @Test
  void aFieldOfMoreElementsThanAnArrayIsNotAColumn() {
    long most = Integer.MAX_VALUE - 8;
    assertThat(TensorColumn.toRead(new Field("x", DType.U8, TensorShape.of(most))).name())
        .isEqualTo("x");
    Field larger = new Field("x", DType.U8, TensorShape.of(2, 1L << 31));
    assertThatThrownBy(() -> TensorColumn.toRead(larger))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "field 'x' has 4294967296 elements a sample, more than Spark's arrays; name the other"
                + " columns with schema(…)");
  }
}
