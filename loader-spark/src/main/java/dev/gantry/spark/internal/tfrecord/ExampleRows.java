// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.internal.examples.FeatureValue;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.util.Arrays;
import java.util.List;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.jspecify.annotations.Nullable;

/// Reads the records of a file as rows, in their order. A missing feature becomes a null.
final class ExampleRows implements PartitionReader<InternalRow> {
  private final TfRecordReader reader;
  private final StructField[] columns;
  private final FeatureSpec.Kind[] kinds;
  private final ExampleReader features;
  private long left;

  ExampleRows(TfRecordScan.Part partition, StructType schema) {
    columns = schema.fields();
    kinds = Arrays.stream(columns).map(FeatureTypes::kind).toArray(FeatureSpec.Kind[]::new);
    List<String> names = Arrays.stream(columns).map(StructField::name).toList();
    features = ExampleReader.of(names, ExampleReader.Limits.NONE);
    left = partition.count();
    TfRecordReader.Position from =
        new TfRecordReader.Position(partition.offset(), partition.first());
    reader =
        partition
            .file()
            .open(
                file ->
                    TfRecordReader.open(
                        GantrySession.shared(), file, TfRecordOptions.defaults(), from),
                TfRecordReader::close);
  }

  @Override
  public boolean next() {
    return left-- > 0 && reader.next();
  }

  @Override
  public InternalRow get() {
    @Nullable Object[] row = new @Nullable Object[columns.length];
    if (columns.length > 0) {
      RawRecord record = FeatureTypes.record(reader);
      features.read(record);
      for (int i = 0; i < row.length; i++) {
        row[i] = value(i, record);
      }
    }
    return new GenericInternalRow(row);
  }

  private @Nullable Object value(int number, RawRecord record) {
    StructField column = columns[number];
    String name = column.name();
    FeatureValue values = features.value(number);
    FeatureSpec.Kind kind = values.kind();
    boolean isArray = column.dataType() instanceof ArrayType;
    long count = values.count();
    if (kind == null || (!isArray && count == 0)) {
      if (!column.nullable()) {
        throw record.fault("missing-feature", "the record lacks feature '" + name + "'");
      }
      return null;
    }
    if (kind != kinds[number]) {
      throw record.fault(
          "wrong-kind", "feature '" + name + "' is of kind " + kind + ", not " + kinds[number]);
    }
    if (!isArray && count != 1) {
      throw record.fault(
          "wrong-length",
          "feature '"
              + name
              + "' has "
              + count
              + " values; its column must be an array to hold them");
    }
    DataType element = FeatureTypes.element(column.dataType());
    return switch (kinds[number]) {
      case FLOAT -> {
        float[] floats = values.floats();
        yield isArray ? new GenericArrayData(floats) : (Object) floats[0];
      }
      case INT64 -> integers(name, values.int64s(), element, isArray, record);
      case BYTES -> {
        Object[] strings = new Object[Math.toIntExact(count)];
        for (int i = 0; i < strings.length; i++) {
          byte[] bytes = values.string(i);
          strings[i] = element instanceof StringType ? UTF8String.fromBytes(bytes) : bytes;
        }
        yield isArray ? new GenericArrayData(strings) : strings[0];
      }
    };
  }

  private static Object integers(
      String name, long[] integers, DataType element, boolean isArray, RawRecord record) {
    if (isArray && element instanceof LongType) {
      return new GenericArrayData(integers);
    }
    DType dtype = TensorColumn.dtype(element).orElseThrow();
    Object[] boxed = new Object[integers.length];
    for (int i = 0; i < boxed.length; i++) {
      boxed[i] = integer(name, integers[i], dtype, element, record);
    }
    return isArray ? new GenericArrayData(boxed) : boxed[0];
  }

  private static Object integer(
      String name, long value, DType dtype, DataType type, RawRecord record) {
    Object result =
        switch (dtype) {
          case BOOL -> value != 0;
          case I8 -> (byte) value;
          case I16 -> (short) value;
          case I32 -> (int) value;
          default -> value;
        };
    if ((result instanceof Number number && number.longValue() != value)
        || (result instanceof Boolean && value >>> 1 != 0)) {
      throw record.fault(
          "value-out-of-range",
          "feature '"
              + name
              + "' is "
              + value
              + ", which does not fit a column of type "
              + type.catalogString());
    }
    return result;
  }

  @Override
  public void close() {
    reader.close();
  }
}
