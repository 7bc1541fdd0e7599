// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.DType;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Computes the values of all codes of the floating-point dtypes of eight bits.
final class FloatCodes {
  private static final int COUNT = 256;

  /// The bias of the exponent in F8_E8M0: code 0 is 2⁻¹²⁷.
  private static final int E8M0_BIAS = 127;

  private static final Map<DType, Formula.Table> TABLES =
      Stream.of(DType.F8_E4M3, DType.F8_E5M2, DType.F8_E4M3FNUZ, DType.F8_E5M2FNUZ, DType.F8_E8M0)
          .collect(Collectors.toUnmodifiableMap(Function.identity(), FloatCodes::tableOf));

  private FloatCodes() {}

  /// Returns the values of all codes of a floating-point dtype of eight bits.
  static Formula.Table table(DType dtype) {
    return Objects.requireNonNull(TABLES.get(dtype), dtype::name);
  }

  private static Formula.Table tableOf(DType dtype) {
    float[] values = new float[COUNT];
    for (int code = 0; code < COUNT; code++) {
      values[code] = value(dtype, code);
    }
    return Formula.Table.of(values);
  }

  private static float value(DType dtype, int code) {
    return switch (dtype) {
      // F8_E4M3 has no infinities, and one NaN for each sign.
      case F8_E4M3 -> (code & 0x7F) == 0x7F ? Float.NaN : number(code, 3, 7);
      // F8_E5M2 has infinities and NaNs as in IEEE 754.
      case F8_E5M2 ->
          (code & 0x7C) != 0x7C
              ? number(code, 2, 15)
              : (code & 3) != 0
                  ? Float.NaN
                  : (code & 0x80) == 0 ? Float.POSITIVE_INFINITY : Float.NEGATIVE_INFINITY;
      // The FNUZ dtypes have no infinities and no negative zero; the code of negative zero is their
      // one NaN.
      case F8_E4M3FNUZ -> code == 0x80 ? Float.NaN : number(code, 3, 8);
      case F8_E5M2FNUZ -> code == 0x80 ? Float.NaN : number(code, 2, 16);
      case F8_E8M0 -> code == 0xFF ? Float.NaN : Math.scalb(1f, code - E8M0_BIAS);
      default -> throw new IllegalArgumentException("not a dtype of codes: " + dtype);
    };
  }

  private static float number(int code, int mantissaBits, int bias) {
    int exponent = (code & 0x7F) >> mantissaBits;
    int mantissa = code & ((1 << mantissaBits) - 1);
    float magnitude =
        exponent == 0
            ? Math.scalb((float) mantissa, 1 - bias - mantissaBits)
            : Math.scalb((float) (mantissa | (1 << mantissaBits)), exponent - bias - mantissaBits);
    return (code & 0x80) == 0 ? magnitude : -magnitude;
  }
}
