// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.util.ArrayData;

/// The values of one column in consecutive memory, as a file stores them. Not thread-safe.
public final class ColumnBuffer {
  static final ValueLayout.OfShort SHORT =
      ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfFloat FLOAT =
      ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
  static final ValueLayout.OfDouble DOUBLE =
      ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  /// Some JVMs support no longer arrays than this.
  static final int MOST_BYTES = Integer.MAX_VALUE - 8;

  private final TensorColumn column;
  private final Field field;
  private final int ordinal;
  private final long valueBytes;
  private final long elements;
  private final MemorySegment bytes;

  /// @param ordinal the column's index in each row
  /// @param rows the capacity of the buffer, in rows
  /// @throws MisuseException if the rows need more bytes than a Java array has
  public ColumnBuffer(TensorColumn column, int ordinal, int rows) {
    this.column = column;
    this.ordinal = ordinal;
    field = column.field();
    valueBytes = field.sampleBytes();
    elements = field.shape().elements().orElseThrow();
    if (valueBytes > MOST_BYTES / rows) {
      throw new MisuseException(
          "column '" + column.name() + "' has values of " + valueBytes + " bytes: too large");
    }
    bytes = MemorySegment.ofArray(new byte[(int) valueBytes * rows]);
  }

  public Field field() {
    return field;
  }

  /// Returns the values of the first rows.
  public MemorySegment values(int rows) {
    return bytes.asSlice(0, rows * valueBytes);
  }

  /// Returns how many elements a row's array has; 1 for a number.
  ///
  /// @throws MisuseException if the value is null
  public static long elements(TensorColumn column, InternalRow row, int ordinal) {
    requireValue(column, row.isNullAt(ordinal));
    if (column.scalar()) {
      return 1;
    }
    return column.dtype() == DType.U8
        ? row.getBinary(ordinal).length
        : row.getArray(ordinal).numElements();
  }

  private static void requireValue(TensorColumn column, boolean isNull) {
    if (isNull) {
      throw new MisuseException(
          "column '" + column.name() + "' has a null, for which shards have no place");
    }
  }

  /// @throws MisuseException if the row's value is null, or if its number of elements is not that
  ///     of the shape
  public void put(InternalRow row, int at) {
    requireValue(column, row.isNullAt(ordinal));
    long offset = at * valueBytes;
    if (column.scalar()) {
      putNumber(row, offset);
    } else if (column.dtype() == DType.U8) {
      byte[] value = row.getBinary(ordinal);
      requireLength(value.length);
      MemorySegment.copy(value, 0, bytes, ValueLayout.JAVA_BYTE, offset, value.length);
    } else {
      ArrayData value = row.getArray(ordinal);
      requireLength(value.numElements());
      if (column.mayHaveNulls()) {
        for (int i = 0; i < elements; i++) {
          requireValue(column, value.isNullAt(i));
        }
      }
      putArray(value, offset);
    }
  }

  private void requireLength(int length) {
    if (length != elements) {
      throw column.unfit(length, field.shape());
    }
  }

  private void putNumber(InternalRow row, long offset) {
    switch (column.dtype()) {
      case BOOL ->
          bytes.set(ValueLayout.JAVA_BYTE, offset, (byte) (row.getBoolean(ordinal) ? 1 : 0));
      case I8 -> bytes.set(ValueLayout.JAVA_BYTE, offset, row.getByte(ordinal));
      case I16 -> bytes.set(SHORT, offset, row.getShort(ordinal));
      case I32 -> bytes.set(INT, offset, row.getInt(ordinal));
      case I64 -> bytes.set(LONG, offset, row.getLong(ordinal));
      case F32 -> bytes.set(FLOAT, offset, row.getFloat(ordinal));
      case F64 -> bytes.set(DOUBLE, offset, row.getDouble(ordinal));
      default -> throw new IllegalStateException("no column is written as " + column.dtype());
    }
  }

  private void putArray(ArrayData value, long offset) {
    int count = (int) elements;
    switch (column.dtype()) {
      case BOOL -> {
        for (int i = 0; i < count; i++) {
          bytes.set(ValueLayout.JAVA_BYTE, offset + i, (byte) (value.getBoolean(i) ? 1 : 0));
        }
      }
      case I8 ->
          MemorySegment.copy(value.toByteArray(), 0, bytes, ValueLayout.JAVA_BYTE, offset, count);
      case I16 -> MemorySegment.copy(value.toShortArray(), 0, bytes, SHORT, offset, count);
      case I32 -> MemorySegment.copy(value.toIntArray(), 0, bytes, INT, offset, count);
      case I64 -> MemorySegment.copy(value.toLongArray(), 0, bytes, LONG, offset, count);
      case F32 -> MemorySegment.copy(value.toFloatArray(), 0, bytes, FLOAT, offset, count);
      case F64 -> MemorySegment.copy(value.toDoubleArray(), 0, bytes, DOUBLE, offset, count);
      default -> throw new IllegalStateException("no column is written as " + column.dtype());
    }
  }
}
