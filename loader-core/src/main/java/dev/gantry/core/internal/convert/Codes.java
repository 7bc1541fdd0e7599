// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;

/// Rounds results to their dtypes. Thread-safe.
final class Codes {
  static final int NAN_BF16 = 0x7FC0;
  static final int NAN_F16 = 0x7E00;
  static final int NAN_F32 = 0x7FC00000;
  static final int INFINITE_F32 = 0x7F800000;

  private Codes() {}

  /// Returns the bits of a result, rounded to its dtype.
  static int bits(DType to, float value) {
    return switch (to) {
      case BF16 -> bf16(value);
      case F16 -> Float.isNaN(value) ? NAN_F16 : Float.floatToFloat16(value) & 0xFFFF;
      case F32 -> Float.isNaN(value) ? NAN_F32 : Float.floatToRawIntBits(value);
      default -> throw new IllegalArgumentException("not a dtype of results: " + to);
    };
  }

  static int bf16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return Float.isNaN(value) ? NAN_BF16 : (bits + 0x7FFF + ((bits >>> 16) & 1)) >>> 16;
  }
}
