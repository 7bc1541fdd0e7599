package dev.gantry.formats.tfrecord.index;

import dev.gantry.core.DType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.EnumSet;
import java.util.Optional;
import java.util.Set;

/// How integers are written in a dtype.
///
/// @param bytes of each: 1, 2, 4 or 8
/// @param least that the dtype has room for
/// @param most likewise
record IntegerForm(int bytes, long least, long most) {
  private static final Set<DType> SIGNED = EnumSet.of(DType.I8, DType.I16, DType.I32, DType.I64);
  private static final Set<DType> UNSIGNED = EnumSet.of(DType.U8, DType.U16, DType.U32, DType.U64);
  private static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /// Empty for what is no dtype of integers.
  static Optional<IntegerForm> of(DType dtype) {
    int spare = Long.SIZE - dtype.bits();
    if (SIGNED.contains(dtype)) {
      return Optional.of(
          new IntegerForm(
              dtype.bits() / Byte.SIZE, Long.MIN_VALUE >> spare, Long.MAX_VALUE >> spare));
    }
    return UNSIGNED.contains(dtype)
        ? Optional.of(
            new IntegerForm(
                dtype.bits() / Byte.SIZE, 0, spare == 0 ? Long.MAX_VALUE : -1L >>> spare))
        : Optional.empty();
  }

  /// Writes integers that the dtype has room for.
  ///
  /// @param values as an index has them, from number `first` on
  void write(MemorySegment values, long first, long count, MemorySegment target, long offset) {
    if (bytes == Long.BYTES) {
      MemorySegment.copy(values, first * Long.BYTES, target, offset, count * Long.BYTES);
      return;
    }
    for (long i = 0; i < count; i++) {
      long value = MappedColumn.signedLong(values, first + i);
      long at = offset + i * bytes;
      switch (bytes) {
        case Byte.BYTES -> target.set(ValueLayout.JAVA_BYTE, at, (byte) value);
        case Short.BYTES -> target.set(SHORT, at, (short) value);
        default -> target.set(Column.INT, at, (int) value);
      }
    }
  }
}
