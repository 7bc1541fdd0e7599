// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import java.nio.file.Path;
import java.util.Locale;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class WordsTest {
  @Test
  void devicesByName() {
    assertThat(Device.parse("host")).isEqualTo(Device.HOST);
    assertThat(Device.parse("cuda")).isEqualTo(new Device.Cuda(0));
    assertThat(Device.parse("cuda:17")).isEqualTo(new Device.Cuda(17));
    assertThat(Device.parse(Device.HOST.toString())).isEqualTo(Device.HOST);
    assertThat(Device.parse(new Device.Cuda(3).toString())).isEqualTo(new Device.Cuda(3));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "cpu",
        "HOST",
        "cuda:",
        "cuda:-1",
        "cuda:1 ",
        "cuda:99999",
        "cuda:1\n",
        "cuda:x"
      })
  void noOtherDevices(String name) {
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> Device.parse(name));
  }

  @Test
  void noNegativeOrdinal() {
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> new Device.Cuda(-1));
  }

  @Test
  void shapesCountTheirElements() {
    assertThat(TensorShape.of().elements()).hasValue(1);
    assertThat(TensorShape.of(3, 8).elements()).hasValue(24);
    assertThat(TensorShape.of(3, 0, 8).elements()).hasValue(0);
    assertThat(TensorShape.of(Long.MAX_VALUE, 1).elements()).hasValue(Long.MAX_VALUE);
  }

  @ParameterizedTest
  @CsvSource({
    "4611686018427387904, 2, 1",
    "4294967296, 4294967296, 1",
    "9223372036854775807, 2, 1",
    "9223372036854775807, 9223372036854775807, 0"
  })
  void shapesThatPassALongCountNothing(long first, long second, long third) {
    assertThat(TensorShape.of(first, second, third).elements()).isEqualTo(OptionalLong.empty());
  }

  @Test
  void shapesAreValues() {
    long[] dimensions = {2, 3};
    TensorShape shape = TensorShape.of(dimensions);
    dimensions[0] = 9;
    shape.toArray()[1] = 9;
    assertThat(shape).isEqualTo(TensorShape.of(2, 3)).hasSameHashCodeAs(TensorShape.of(2, 3));
    assertThat(shape).isNotEqualTo(TensorShape.of(3, 2)).hasToString("[2, 3]");
    assertThat(shape.withRows(0)).isEqualTo(TensorShape.of(0, 3));
    assertThat(shape.rank()).isEqualTo(2);
    assertThat(shape.dimension(1)).isEqualTo(3);
    assertThat(TensorShape.of()).hasToString("[]");
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> TensorShape.of().withRows(1));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> shape.withRows(-1));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> TensorShape.of(1, -1));
  }

  @ParameterizedTest
  @EnumSource
  void dtypesByTheirOwnNameOnly(DType dtype) {
    assertThat(DType.named(dtype.name())).contains(dtype);
    assertThat(DType.named(dtype.name().toLowerCase(Locale.ROOT))).isEmpty();
    assertThat(Integer.bitCount(dtype.alignmentBytes())).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"F4, 4, 1", "F6_E2M3, 6, 1", "BOOL, 8, 1", "BF16, 16, 2", "F32, 32, 4", "C64, 64, 8"})
  void dtypesKnowTheirBits(DType dtype, int bits, int alignment) {
    assertThat(dtype.bits()).isEqualTo(bits);
    assertThat(dtype.alignmentBytes()).isEqualTo(alignment);
  }

  @Test
  void thereAreTwentyTwoDtypes() {
    assertThat(DType.values()).hasSize(22);
  }

  @Test
  void extentsEndWithinALong() {
    Path file = Path.of("weights");
    assertThat(new Extent(file, Long.MAX_VALUE - 5, 5).end()).isEqualTo(Long.MAX_VALUE);
    assertThatExceptionOfType(MisuseException.class)
        .isThrownBy(() -> new Extent(file, Long.MAX_VALUE - 5, 6));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> new Extent(file, -1, 6));
    assertThatExceptionOfType(MisuseException.class).isThrownBy(() -> new Extent(file, 0, -1));
  }
}
