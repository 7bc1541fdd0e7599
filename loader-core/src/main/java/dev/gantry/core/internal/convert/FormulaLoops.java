// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT_UNALIGNED;
import static java.lang.foreign.ValueLayout.JAVA_SHORT_UNALIGNED;

import dev.gantry.core.spi.Formula;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/// The loops of [HostFormula]. Each is simple enough that the JVM compiles it to vector
/// instructions if the CPU has them. All parameters named `count` are numbers of results.
final class FormulaLoops {
  private static final ValueLayout.OfShort SHORT =
      JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private FormulaLoops() {}

  /// Writes consecutive numbers.
  static void count(int[] to, int first, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = first + i;
    }
  }

  static void run(Formula.Operator operator, int[] left, int[] right, int[] to, int count) {
    switch (operator) {
      case PLUS -> plus(left, right, to, count);
      case MINUS -> minus(left, right, to, count);
      case TIMES -> times(left, right, to, count);
      case DIVIDE -> divide(left, right, to, count);
      case REMAINDER -> remainder(left, right, to, count);
      case SHIFT_LEFT -> shiftLeft(left, right, to, count);
      case SHIFT_RIGHT -> shiftRight(left, right, to, count);
      case AND -> and(left, right, to, count);
      case OR -> or(left, right, to, count);
      case XOR -> xor(left, right, to, count);
      case SMALLER -> smaller(left, right, to, count);
    }
  }

  private static void plus(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] + right[i];
    }
  }

  private static void minus(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] - right[i];
    }
  }

  private static void times(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] * right[i];
    }
  }

  private static void divide(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = Integer.divideUnsigned(left[i], right[i]);
    }
  }

  private static void remainder(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = Integer.remainderUnsigned(left[i], right[i]);
    }
  }

  private static void shiftLeft(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] << right[i];
    }
  }

  private static void shiftRight(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] >>> right[i];
    }
  }

  private static void and(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] & right[i];
    }
  }

  private static void or(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] | right[i];
    }
  }

  private static void xor(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] ^ right[i];
    }
  }

  private static void smaller(int[] left, int[] right, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = Integer.compareUnsigned(left[i], right[i]) < 0 ? left[i] : right[i];
    }
  }

  static void run(Formula.Operator operator, float[] left, float[] right, float[] to, int count) {
    switch (operator) {
      case PLUS -> plus(left, right, to, count);
      case MINUS -> minus(left, right, to, count);
      case TIMES -> times(left, right, to, count);
      case DIVIDE -> divide(left, right, to, count);
      case REMAINDER, SHIFT_LEFT, SHIFT_RIGHT, AND, OR, XOR, SMALLER ->
          throw new IllegalStateException(operator + " of F32 numbers");
    }
  }

  private static void plus(float[] left, float[] right, float[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] + right[i];
    }
  }

  private static void minus(float[] left, float[] right, float[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] - right[i];
    }
  }

  private static void times(float[] left, float[] right, float[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] * right[i];
    }
  }

  private static void divide(float[] left, float[] right, float[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = left[i] / right[i];
    }
  }

  static void toReal(Formula.Source what, int[] from, float[] to, int count) {
    switch (what) {
      case INTEGER -> {
        for (int i = 0; i < count; i++) {
          to[i] = from[i];
        }
      }
      case F16 -> {
        for (int i = 0; i < count; i++) {
          to[i] = Float.float16ToFloat((short) from[i]);
        }
      }
      case F32 -> {
        for (int i = 0; i < count; i++) {
          to[i] = Float.intBitsToFloat(from[i]);
        }
      }
    }
  }

  static float[] reals(int[] bits) {
    float[] reals = new float[bits.length];
    toReal(Formula.Source.F32, bits, reals, bits.length);
    return reals;
  }

  static void lookUp(int[] table, int[] index, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = table[index[i]];
    }
  }

  static void lookUp(float[] table, int[] index, float[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = table[index[i]];
    }
  }

  /// Adds unsigned numbers times a stride to offsets.
  ///
  /// @param first whether the offsets are set to 0 before
  static void addScaled(int[] numbers, long stride, long[] offsets, int count, boolean first) {
    if (first) {
      Arrays.fill(offsets, 0, count, 0);
    }
    for (int i = 0; i < count; i++) {
      offsets[i] += (numbers[i] & 0xFFFFFFFFL) * stride;
    }
  }

  /// Reads little-endian integers.
  ///
  /// @param at a number of bytes that is added to all offsets
  static void load(MemorySegment source, int bytes, long at, long[] offsets, int[] to, int count) {
    switch (bytes) {
      case Byte.BYTES -> {
        for (int i = 0; i < count; i++) {
          to[i] = source.get(JAVA_BYTE, at + offsets[i]) & 0xFF;
        }
      }
      case Short.BYTES -> {
        for (int i = 0; i < count; i++) {
          to[i] = source.get(SHORT, at + offsets[i]) & 0xFFFF;
        }
      }
      default -> {
        for (int i = 0; i < count; i++) {
          to[i] = source.get(INT, at + offsets[i]);
        }
      }
    }
  }

  /// Repeats the number of each run for all results of the run.
  ///
  /// @param factor the length of a run
  /// @param first the number of the first result, counted from the start of some run
  static void spread(int[] runs, int factor, int first, int[] to, int count) {
    int at = 0;
    for (int run = 0; at < count; run++) {
      int end = Math.min(count, (first / factor + run + 1) * factor - first);
      Arrays.fill(to, at, end, runs[run]);
      at = end;
    }
  }

  /// Keeps the first number of each longer run.
  ///
  /// @param factor how many runs make a longer run
  /// @param first the number of the first run, counted from the start of some longer run
  static void thin(int[] runs, int factor, int first, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = runs[Math.max(0, (first / factor + i) * factor - first)];
    }
  }

  static void spread(float[] runs, int factor, int first, float[] to, int count) {
    int at = 0;
    for (int run = 0; at < count; run++) {
      int end = Math.min(count, (first / factor + run + 1) * factor - first);
      Arrays.fill(to, at, end, runs[run]);
      at = end;
    }
  }

  static void toF32(float[] from, int[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = Float.floatToIntBits(from[i]);
    }
  }

  static void toBf16(float[] from, int[] bits, short[] to, int count) {
    int largest = 0;
    for (int i = 0; i < count; i++) {
      bits[i] = Float.floatToRawIntBits(from[i]);
    }
    for (int i = 0; i < count; i++) {
      largest = Math.max(largest, bits[i] & 0x7FFFFFFF);
    }
    if (largest > Codes.INFINITE_F32) {
      for (int i = 0; i < count; i++) {
        to[i] = (short) Codes.bf16(from[i]);
      }
      return;
    }
    for (int i = 0; i < count; i++) {
      to[i] = (short) ((bits[i] + 0x7FFF + ((bits[i] >>> 16) & 1)) >>> 16);
    }
  }

  static void toF16(float[] from, short[] to, int count) {
    for (int i = 0; i < count; i++) {
      to[i] = Float.floatToFloat16(from[i]);
    }
    for (int i = 0; i < count; i++) {
      to[i] = (to[i] & 0x7FFF) > 0x7C00 ? (short) Codes.NAN_F16 : to[i];
    }
  }
}
