// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import java.io.Serializable;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.apache.spark.sql.Row;
import scala.collection.Seq;
import scala.collection.mutable.ArraySeq;

/// Makes one input array of a model from a column of a batch of rows. Spark's bytes become int8, shorts
/// int32, and binary uint8.
final class RowColumn implements Serializable {
  private static final long serialVersionUID = 1L;

  private final String name;
  private final int number;

  private final DType numbers;

  private final long[] shape;

  /// @param number of the column in each row
  /// @param shape of a row's value; empty for a number, or for an array of one axis
  RowColumn(String name, int number, DType numbers, long[] shape) {
    this.name = name;
    this.number = number;
    this.numbers = numbers;
    this.shape = shape;
  }

  private DataType dataType() {
    return switch (numbers) {
      case BOOL -> DataType.BOOLEAN;
      case I8 -> DataType.INT8;
      case I16, I32 -> DataType.INT32;
      case I64 -> DataType.INT64;
      case F32 -> DataType.FLOAT32;
      case F64 -> DataType.FLOAT64;
      case U8 -> DataType.UINT8;
      default -> throw new IllegalStateException("no array is of " + numbers);
    };
  }

  /// The rows' values, under the column's name: blocks of hub models take their inputs by it.
  ///
  /// @throws MisuseException if a value is null, or of another length than the shape or the other rows
  ///     have
  NDArray array(NDManager manager, List<Row> rows) {
    DataType type = dataType();
    Object first = values(rows.getFirst());
    boolean isArray = first.getClass().isArray();
    int elements = isArray ? Array.getLength(first) : 1;
    long[] each = shape.length == 0 && isArray ? new long[] {elements} : shape;
    requireLength(new Shape(each).size(), elements);
    ByteBuffer bytes =
        ByteBuffer.allocateDirect(
                Math.toIntExact((long) rows.size() * elements * type.getNumOfBytes()))
            .order(ByteOrder.nativeOrder());
    for (Row row : rows) {
      Object values = values(row);
      requireLength(elements, values.getClass().isArray() ? Array.getLength(values) : 1);
      put(values, bytes);
    }
    Shape batch = new Shape(rows.size()).addAll(new Shape(each));
    NDArray array = manager.create(bytes.flip(), batch, type);
    array.setName(name);
    return array;
  }

  private void requireLength(long wanted, int length) {
    if (wanted != length) {
      throw new MisuseException(
          "column '" + name + "' has a value of " + length + " elements, not " + wanted);
    }
  }

  /// A number, or an array of a primitive type.
  private Object values(Row row) {
    if (row.isNullAt(number)) {
      throw new MisuseException("column '" + name + "' has a null, which no model takes");
    }
    return switch (row.get(number)) {
      case ArraySeq<?> seq when seq.array().getClass().getComponentType().isPrimitive() ->
          seq.array();
      case Seq<?> seq -> unboxed(seq);
      case Object value -> value;
    };
  }

  private Object unboxed(Seq<?> seq) {
    Class<?> type =
        switch (numbers) {
          case BOOL -> boolean.class;
          case I8 -> byte.class;
          case I16 -> short.class;
          case I32 -> int.class;
          case I64 -> long.class;
          case F64 -> double.class;
          default -> float.class;
        };
    Object array = Array.newInstance(type, seq.size());
    for (int i = 0; i < seq.size(); i++) {
      Object value = seq.apply(i);
      if (value == null) {
        throw new MisuseException("column '" + name + "' has a null, which no model takes");
      }
      Array.set(array, i, value);
    }
    return array;
  }

  private static void put(Object values, ByteBuffer bytes) {
    int at = bytes.position();
    switch (values) {
      case float[] floats -> {
        bytes.asFloatBuffer().put(floats);
        bytes.position(at + floats.length * Float.BYTES);
      }
      case double[] doubles -> {
        bytes.asDoubleBuffer().put(doubles);
        bytes.position(at + doubles.length * Double.BYTES);
      }
      case long[] longs -> {
        bytes.asLongBuffer().put(longs);
        bytes.position(at + longs.length * Long.BYTES);
      }
      case int[] ints -> {
        bytes.asIntBuffer().put(ints);
        bytes.position(at + ints.length * Integer.BYTES);
      }
      case short[] shorts -> {
        for (short value : shorts) {
          bytes.putInt(value);
        }
      }
      case byte[] all -> bytes.put(all);
      case boolean[] all -> {
        for (boolean value : all) {
          bytes.put((byte) (value ? 1 : 0));
        }
      }
      case Float value -> bytes.putFloat(value);
      case Double value -> bytes.putDouble(value);
      case Long value -> bytes.putLong(value);
      case Integer value -> bytes.putInt(value);
      case Short value -> bytes.putInt(value);
      case Byte value -> bytes.put(value);
      case Boolean value -> bytes.put((byte) (value ? 1 : 0));
      default -> throw new IllegalStateException("no numbers: " + values.getClass());
    }
  }
}
