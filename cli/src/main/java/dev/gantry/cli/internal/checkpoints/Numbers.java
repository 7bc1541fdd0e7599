// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.checkpoints;

import dev.gantry.core.DType;
import dev.gantry.formats.spi.StoredTensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Optional;

/// Compares the numbers of tensors in memory.
final class Numbers {
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private Numbers() {}

  /// Reads an element as a number.
  private interface Element {
    double at(MemorySegment bytes, long index);
  }

  /// Returns the largest absolute difference of two tensors' elements; empty if a dtype is none of plain
  /// numbers.
  ///
  /// @return NaN if an element is NaN on one side only
  static Optional<Double> maxDifference(
      StoredTensor tensor, MemorySegment bytes, DType otherType, MemorySegment others) {
    Optional<Element> one = element(tensor.dtype());
    Optional<Element> other = element(otherType);
    if (one.isEmpty() || other.isEmpty()) {
      return Optional.empty();
    }
    double most = 0;
    long elements = tensor.shape().elements().orElseThrow();
    for (long i = 0; i < elements && !Double.isNaN(most); i++) {
      double first = one.get().at(bytes, i);
      double second = other.get().at(others, i);
      if (first != second && !(Double.isNaN(first) && Double.isNaN(second))) {
        most = Math.max(most, Math.abs(first - second));
      }
    }
    return Optional.of(most);
  }

  private static Optional<Element> element(DType dtype) {
    return switch (dtype) {
      case BOOL, U8 -> Optional.of((bytes, i) -> bytes.get(ValueLayout.JAVA_BYTE, i) & 0xff);
      case I8 -> Optional.of((bytes, i) -> bytes.get(ValueLayout.JAVA_BYTE, i));
      case I16 -> Optional.of((bytes, i) -> bytes.getAtIndex(SHORT, i));
      case U16 -> Optional.of((bytes, i) -> bytes.getAtIndex(SHORT, i) & 0xffff);
      case I32 -> Optional.of((bytes, i) -> bytes.getAtIndex(INT, i));
      case U32 -> Optional.of((bytes, i) -> Integer.toUnsignedLong(bytes.getAtIndex(INT, i)));
      case I64 -> Optional.of((bytes, i) -> bytes.getAtIndex(LONG, i));
      case U64 ->
          Optional.of((bytes, i) -> {
            long value = bytes.getAtIndex(LONG, i);
            return (value >>> 1) * 2.0 + (value & 1);
          });
      case F16 -> Optional.of((bytes, i) -> Float.float16ToFloat(bytes.getAtIndex(SHORT, i)));
      case BF16 ->
          Optional.of((bytes, i) -> Float.intBitsToFloat(bytes.getAtIndex(SHORT, i) << 16));
      case F32 -> Optional.of((bytes, i) -> Float.intBitsToFloat(bytes.getAtIndex(INT, i)));
      case F64 -> Optional.of((bytes, i) -> Double.longBitsToDouble(bytes.getAtIndex(LONG, i)));
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, C64 ->
          Optional.empty();
    };
  }
}
