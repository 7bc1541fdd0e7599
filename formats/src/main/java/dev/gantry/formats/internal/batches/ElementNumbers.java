// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Optional;

/// Reads elements in memory as numbers, by their dtype.
public final class ElementNumbers {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private ElementNumbers() {}

  /// Reads an integer or a truth value.
  @FunctionalInterface
  public interface Integers {
    /// @param offset the element's first byte
    long at(MemorySegment bytes, long offset);
  }

  /// Reads a floating-point number.
  @FunctionalInterface
  public interface Floats {
    /// @param offset the element's first byte
    double at(MemorySegment bytes, long offset);
  }

  /// Reads the elements of a dtype whose values are all `long`; empty for any other dtype.
  public static Optional<Integers> integers(DType dtype) {
    return switch (dtype) {
      // As NumPy and PyTorch read it.
      case BOOL -> Optional.of((bytes, at) -> bytes.get(ValueLayout.JAVA_BYTE, at) == 0 ? 0 : 1);
      case U8 -> Optional.of((bytes, at) -> bytes.get(ValueLayout.JAVA_BYTE, at) & 0xff);
      case I8 -> Optional.of((bytes, at) -> bytes.get(ValueLayout.JAVA_BYTE, at));
      case I16 -> Optional.of((bytes, at) -> bytes.get(SHORT, at));
      case U16 -> Optional.of((bytes, at) -> bytes.get(SHORT, at) & 0xffff);
      case I32 -> Optional.of((bytes, at) -> bytes.get(INT, at));
      case U32 -> Optional.of((bytes, at) -> Integer.toUnsignedLong(bytes.get(INT, at)));
      case I64 -> Optional.of((bytes, at) -> bytes.get(LONG, at));
      case U64, F16, BF16, F32, F64 -> Optional.empty();
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, C64 ->
          Optional.empty();
    };
  }

  /// Reads the elements of a dtype of plain numbers as doubles, which round large 64-bit integers; empty for any
  /// other dtype.
  public static Optional<Floats> numbers(DType dtype) {
    return switch (dtype) {
      case F16 -> Optional.of((bytes, at) -> Float.float16ToFloat(bytes.get(SHORT, at)));
      case BF16 -> Optional.of((bytes, at) -> Float.intBitsToFloat(bytes.get(SHORT, at) << 16));
      case F32 -> Optional.of((bytes, at) -> Float.intBitsToFloat(bytes.get(INT, at)));
      case F64 -> Optional.of((bytes, at) -> Double.longBitsToDouble(bytes.get(LONG, at)));
      case U64 ->
          Optional.of((bytes, at) -> {
            long value = bytes.get(LONG, at);
            return (value >>> 1) * 2.0 + (value & 1);
          });
      case BOOL, U8, I8, U16, I16, U32, I32, I64 ->
          integers(dtype).map(integer -> (bytes, at) -> integer.at(bytes, at));
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, C64 ->
          Optional.empty();
    };
  }
}
