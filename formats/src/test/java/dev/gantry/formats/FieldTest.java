// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class FieldTest {
  @ParameterizedTest
  @EnumSource(
      value = DType.class,
      names = {"F4", "F6_E2M3", "F6_E3M2"})
  void elementsThatFillNoByteAreRefused(DType dtype) {
    assertThatThrownBy(() -> new Field("weights", dtype, TensorShape.of(8)))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("weights")
        .hasMessageContaining(dtype.toString());
  }
}
