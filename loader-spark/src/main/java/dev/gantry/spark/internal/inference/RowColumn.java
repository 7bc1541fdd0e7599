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
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.Row;
import scala.collection.Seq;
import scala.collection.mutable.ArraySeq;

/// Makes one input array of a model from a column of a batch of rows. Spark's bytes become int8,
/// shorts int32, and binary uint8.
///
/// @param number the index of the column in each row
/// @param shape the shape of a row's value; empty for a number, or for an array with one axis
record RowColumn(String name, int number, DType numbers, List<Long> shape) implements Serializable {
  /// Returns the rows' values as one array with the column's name, because blocks of hub models
  /// find their inputs by name.
  ///
  /// @throws MisuseException if a value is null, or its length differs from the shape's or from
  ///     that of another row
  NDArray array(NDManager manager, List<Row> rows) {
    Object first = values(rows.getFirst());
    boolean isArray = first.getClass().isArray();
    int elements = isArray ? Array.getLength(first) : 1;
    Shape each = shape.isEmpty() && isArray ? new Shape(elements) : new Shape(shape);
    requireLength(each.size(), elements);
    Object all = Array.newInstance(elementClass(), Math.multiplyExact(rows.size(), elements));
    for (int i = 0; i < rows.size(); i++) {
      Object values = values(rows.get(i));
      if (values.getClass().isArray()) {
        requireLength(elements, Array.getLength(values));
        System.arraycopy(values, 0, all, i * elements, elements);
      } else {
        Array.set(all, i, values);
      }
    }
    NDArray array = create(manager, all, new Shape(rows.size()).addAll(each));
    array.setName(name);
    return array;
  }

  private NDArray create(NDManager manager, Object all, Shape shape) {
    return switch (all) {
      case boolean[] values -> manager.create(values, shape);
      case byte[] values when numbers == DType.U8 ->
          manager.create(ByteBuffer.wrap(values), shape, DataType.UINT8);
      case byte[] values -> manager.create(values, shape);
      case short[] values -> {
        int[] widened = new int[values.length];
        Arrays.setAll(widened, i -> values[i]);
        yield manager.create(widened, shape);
      }
      case int[] values -> manager.create(values, shape);
      case long[] values -> manager.create(values, shape);
      case float[] values -> manager.create(values, shape);
      case double[] values -> manager.create(values, shape);
      default -> throw new IllegalStateException("no numbers: " + all.getClass());
    };
  }

  private void requireLength(long wanted, int length) {
    if (wanted != length) {
      throw new MisuseException(
          "column '" + name + "' has a value of " + length + " elements, not " + wanted);
    }
  }

  /// Returns a number, or an array of a primitive type.
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
    Object array = Array.newInstance(elementClass(), seq.size());
    for (int i = 0; i < seq.size(); i++) {
      Object value = seq.apply(i);
      if (value == null) {
        throw new MisuseException("column '" + name + "' has a null, which no model takes");
      }
      Array.set(array, i, value);
    }
    return array;
  }

  private Class<?> elementClass() {
    return switch (numbers) {
      case BOOL -> boolean.class;
      case I8, U8 -> byte.class;
      case I16 -> short.class;
      case I32 -> int.class;
      case I64 -> long.class;
      case F32 -> float.class;
      case F64 -> double.class;
      default -> throw new IllegalStateException("no array is of " + numbers);
    };
  }
}
