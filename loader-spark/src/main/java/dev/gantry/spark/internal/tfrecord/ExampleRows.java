// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.ExampleValues;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.GenericInternalRow;
import org.apache.spark.sql.catalyst.util.GenericArrayData;
import org.apache.spark.sql.connector.read.PartitionReader;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;
import org.jspecify.annotations.Nullable;

/// Reads records one after the other as rows, of which a missing feature is null.
final class ExampleRows implements PartitionReader<InternalRow> {
  private final TfRecordReader reader;
  private final StructField[] columns;
  private final FeatureSpec.Kind[] kinds;
  private final ExampleValues values;
  private long left;

  ExampleRows(TfRecordPartition partition, StructType schema) {
    columns = schema.fields();
    kinds = Arrays.stream(columns).map(FeatureTypes::kind).toArray(FeatureSpec.Kind[]::new);
    List<String> names = Arrays.stream(columns).map(StructField::name).toList();
    values = new ExampleValues(names);
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
      values.read(record);
      for (int i = 0; i < row.length; i++) {
        row[i] = value(i, record);
      }
    }
    return new GenericInternalRow(row);
  }

  private @Nullable Object value(int number, RawRecord record) {
    StructField column = columns[number];
    String name = column.name();
    Optional<FeatureSpec.Kind> kind = values.kind(name);
    boolean isArray = column.dataType() instanceof ArrayType;
    int count = kind.isEmpty() ? 0 : values.count(name);
    if (kind.isEmpty() || (!isArray && count == 0)) {
      if (!column.nullable()) {
        throw fault(record, "missing-feature", "feature '" + name + "' is not there");
      }
      return null;
    }
    if (kind.get() != kinds[number]) {
      throw fault(
          record,
          "wrong-kind",
          "feature '" + name + "' is of kind " + kind.get() + ", not " + kinds[number]);
    }
    if (!isArray && count != 1) {
      throw fault(
          record,
          "wrong-length",
          "feature '" + name + "' has " + count + " values; its column is no array");
    }
    DataType element = FeatureTypes.element(column.dataType());
    return switch (kinds[number]) {
      case FLOAT -> {
        float[] floats = values.floats(name);
        yield isArray ? new GenericArrayData(floats) : (Object) floats[0];
      }
      case INT64 -> integers(name, element, isArray, record);
      case BYTES -> {
        Object[] strings = new Object[count];
        for (int i = 0; i < count; i++) {
          byte[] bytes = values.string(name, i);
          strings[i] = element instanceof StringType ? UTF8String.fromBytes(bytes) : bytes;
        }
        yield isArray ? new GenericArrayData(strings) : strings[0];
      }
    };
  }

  private Object integers(String name, DataType element, boolean isArray, RawRecord record) {
    long[] integers = values.int64s(name);
    if (isArray && element instanceof LongType) {
      return new GenericArrayData(integers);
    }
    Object[] boxed = new Object[integers.length];
    for (int i = 0; i < boxed.length; i++) {
      boxed[i] = integer(name, integers[i], element, record);
    }
    return isArray ? new GenericArrayData(boxed) : boxed[0];
  }

  private static Object integer(String name, long value, DataType type, RawRecord record) {
    Object result =
        switch (type) {
          case BooleanType _ -> value != 0;
          case ByteType _ -> (byte) value;
          case ShortType _ -> (short) value;
          case IntegerType _ -> (int) value;
          default -> value;
        };
    if ((result instanceof Number number && number.longValue() != value)
        || (result instanceof Boolean && value >>> 1 != 0)) {
      throw fault(
          record,
          "value-out-of-range",
          "feature '" + name + "' is " + value + ", no " + type.catalogString());
    }
    return result;
  }

  private static MalformedFileException fault(RawRecord record, String kind, String detail) {
    return new MalformedFileException(
        record.file(), record.offset(), kind, "record " + record.number() + ": " + detail);
  }

  @Override
  public void close() {
    reader.close();
  }
}
