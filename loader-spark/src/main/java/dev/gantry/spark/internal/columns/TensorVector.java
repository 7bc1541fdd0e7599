// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import static dev.gantry.spark.internal.columns.ColumnBuffer.DOUBLE;
import static dev.gantry.spark.internal.columns.ColumnBuffer.FLOAT;
import static dev.gantry.spark.internal.columns.ColumnBuffer.INT;
import static dev.gantry.spark.internal.columns.ColumnBuffer.LONG;
import static dev.gantry.spark.internal.columns.ColumnBuffer.SHORT;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.vectorized.ColumnVector;
import org.apache.spark.sql.vectorized.ColumnarArray;
import org.apache.spark.sql.vectorized.ColumnarMap;
import org.apache.spark.unsafe.types.UTF8String;

/// A column over a field's values in a reader's memory, without a copy. Spark calls only the
/// getters that fit the column's type.
public final class TensorVector extends ColumnVector {
  private final DType dtype;
  private final MemorySegment bytes;
  private final int elements;

  /// The elements of all values; this vector itself if each value is a single number.
  private final TensorVector numbers;

  /// @param bytes the bytes of all values, one after another
  public TensorVector(Field field, MemorySegment bytes) {
    super(TensorColumn.toRead(field).dataType());
    this.dtype = field.dtype();
    this.bytes = bytes;
    elements = Math.toIntExact(field.shape().elements().orElseThrow());
    numbers =
        field.shape().rank() == 0
            ? this
            : new TensorVector(new Field(field.name(), dtype, TensorShape.of()), bytes);
  }

  @Override
  public void close() {
    // The reader owns the memory, so there is nothing to close.
  }

  @Override
  public boolean hasNull() {
    return false;
  }

  @Override
  public int numNulls() {
    return 0;
  }

  @Override
  public boolean isNullAt(int row) {
    return false;
  }

  @Override
  public boolean getBoolean(int row) {
    return bytes.get(ValueLayout.JAVA_BYTE, row) != 0;
  }

  @Override
  public byte getByte(int row) {
    return bytes.get(ValueLayout.JAVA_BYTE, row);
  }

  @Override
  public short getShort(int row) {
    return dtype == DType.U8
        ? (short) Byte.toUnsignedInt(getByte(row))
        : bytes.getAtIndex(SHORT, row);
  }

  @Override
  public int getInt(int row) {
    return dtype == DType.U16
        ? Short.toUnsignedInt(bytes.getAtIndex(SHORT, row))
        : bytes.getAtIndex(INT, row);
  }

  @Override
  public long getLong(int row) {
    return dtype == DType.U32
        ? Integer.toUnsignedLong(bytes.getAtIndex(INT, row))
        : bytes.getAtIndex(LONG, row);
  }

  @Override
  public float getFloat(int row) {
    return switch (dtype) {
      case F16 -> Float.float16ToFloat(bytes.getAtIndex(SHORT, row));
      case BF16 -> Float.intBitsToFloat(bytes.getAtIndex(SHORT, row) << Short.SIZE);
      default -> bytes.getAtIndex(FLOAT, row);
    };
  }

  @Override
  public float[] getFloats(int row, int count) {
    if (dtype != DType.F32) {
      return super.getFloats(row, count);
    }
    float[] values = new float[count];
    MemorySegment.copy(bytes, FLOAT, (long) row * Float.BYTES, values, 0, count);
    return values;
  }

  @Override
  public double getDouble(int row) {
    return bytes.getAtIndex(DOUBLE, row);
  }

  @Override
  public ColumnarArray getArray(int row) {
    return new ColumnarArray(numbers, row * elements, elements);
  }

  @Override
  public byte[] getBinary(int row) {
    return bytes.asSlice((long) row * elements, elements).toArray(ValueLayout.JAVA_BYTE);
  }

  @Override
  public ColumnVector getChild(int ordinal) {
    return numbers;
  }

  @Override
  public ColumnarMap getMap(int row) {
    throw noSuchType();
  }

  @Override
  public Decimal getDecimal(int row, int precision, int scale) {
    throw noSuchType();
  }

  @Override
  public UTF8String getUTF8String(int row) {
    throw noSuchType();
  }

  private IllegalStateException noSuchType() {
    return new IllegalStateException("a column of " + dtype + " has no such values");
  }
}
