// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.gantry.core.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import java.util.stream.Collectors;

/// Gives the values of 8-bit codes and of scales, and the bits of results. Thread-safe.
final class Codes {
  static final int COUNT = 256;

  private static final int NAN_BF16 = 0x7FC0;
  private static final int NAN_F16 = 0x7E00;
  private static final int NAN_F32 = 0x7FC00000;

  /// The bias of the exponent in F8_E8M0: code 0 is 2⁻¹²⁷.
  private static final int E8M0_BIAS = 127;

  private static final ValueLayout.OfShort SHORT =
      JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfFloat FLOAT =
      JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private static final Map<DType, float[]> VALUES =
      Conversion.SOURCES.stream()
          .collect(Collectors.toUnmodifiableMap(Function.identity(), Codes::valuesOf));

  private Codes() {}

  /// Returns the values of all codes of a dtype of [Conversion#SOURCES]. The array must not be changed.
  static float[] values(DType dtype) {
    return Objects.requireNonNull(VALUES.get(dtype));
  }

  private static float[] valuesOf(DType dtype) {
    float[] values = new float[COUNT];
    for (int code = 0; code < COUNT; code++) {
      values[code] = value(dtype, code);
    }
    return values;
  }

  private static float value(DType dtype, int code) {
    return switch (dtype) {
      case I8 -> (byte) code;
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

  /// Returns the scale with this index.
  static float scale(MemorySegment scales, DType dtype, long index) {
    return switch (dtype) {
      case F32 -> scales.get(FLOAT, index * Float.BYTES);
      case BF16 -> Float.intBitsToFloat(scales.get(SHORT, index * Short.BYTES) << Short.SIZE);
      case F16 -> Float.float16ToFloat(scales.get(SHORT, index * Short.BYTES));
      case F8_E8M0 -> powerOfTwo(scales.get(JAVA_BYTE, index) & 0xFF);
      default -> throw new IllegalArgumentException("not a dtype of scales: " + dtype);
    };
  }

  private static float powerOfTwo(int code) {
    return code == 0xFF ? Float.NaN : Math.scalb(1f, code - E8M0_BIAS);
  }

  /// Returns the bits of a result, rounded to its dtype.
  static int bits(DType to, float value) {
    return switch (to) {
      case BF16 -> bf16(value);
      case F16 -> Float.isNaN(value) ? NAN_F16 : Float.floatToFloat16(value) & 0xFFFF;
      case F32 -> Float.isNaN(value) ? NAN_F32 : Float.floatToRawIntBits(value);
      default -> throw new IllegalArgumentException("not a dtype of results: " + to);
    };
  }

  private static int bf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return Float.isNaN(value) ? NAN_BF16 : (bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16;
  }
}
