// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.util.Arrays;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.SpecializedGetters;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Encodes rows as `tf.train.Example`s. A null value is a missing feature. Not thread-safe.
final class RowExamples {
  private final StructField[] columns;
  private final FeatureSpec.Kind[] kinds;

  RowExamples(StructType schema) {
    columns = schema.fields();
    kinds = Arrays.stream(columns).map(FeatureTypes::kind).toArray(FeatureSpec.Kind[]::new);
  }

  /// @throws MisuseException if an array contains a null
  byte[] record(InternalRow row) {
    ExampleBuilder example = new ExampleBuilder();
    for (int i = 0; i < columns.length; i++) {
      if (!row.isNullAt(i)) {
        if (columns[i].dataType() instanceof ArrayType type) {
          ArrayData values = row.getArray(i);
          requireNoNulls(columns[i].name(), values, type);
          put(example, i, values, 0, values.numElements());
        } else {
          put(example, i, row, i, 1);
        }
      }
    }
    return example.toBytes();
  }

  private static void requireNoNulls(String column, ArrayData values, ArrayType type) {
    if (type.containsNull()) {
      for (int i = 0; i < values.numElements(); i++) {
        if (values.isNullAt(i)) {
          throw new MisuseException(
              "column '" + column + "' has a null in an array, for which records have no place");
        }
      }
    }
  }

  private void put(
      ExampleBuilder example, int column, SpecializedGetters from, int first, int count) {
    String name = columns[column].name();
    DataType type = FeatureTypes.element(columns[column].dataType());
    switch (kinds[column]) {
      case INT64 -> {
        DType dtype = TensorColumn.dtype(type).orElseThrow();
        long[] integers = new long[count];
        for (int i = 0; i < count; i++) {
          integers[i] = integer(from, first + i, dtype);
        }
        example.int64s(name, integers);
      }
      case FLOAT -> {
        float[] floats = new float[count];
        for (int i = 0; i < count; i++) {
          floats[i] = from.getFloat(first + i);
        }
        example.floats(name, floats);
      }
      case BYTES -> {
        byte[][] strings = new byte[count][];
        for (int i = 0; i < count; i++) {
          strings[i] =
              type instanceof StringType
                  ? from.getUTF8String(first + i).getBytes()
                  : from.getBinary(first + i);
        }
        example.bytes(name, strings);
      }
    }
  }

  private static long integer(SpecializedGetters from, int at, DType dtype) {
    return switch (dtype) {
      case BOOL -> from.getBoolean(at) ? 1 : 0;
      case I8 -> from.getByte(at);
      case I16 -> from.getShort(at);
      case I32 -> from.getInt(at);
      default -> from.getLong(at);
    };
  }
}
