// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.examples.ExampleReader;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.internal.examples.Schema;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StringType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Converts between the types of features and of columns.
final class FeatureTypes {
  private FeatureTypes() {}

  /// Returns the kind of feature that stores a column's values, or the elements of its arrays.
  ///
  /// @throws MisuseException if no kind of feature stores such values
  static FeatureSpec.Kind kind(StructField column) {
    DataType type = column.dataType();
    DataType element = element(type);
    if (element instanceof BinaryType || element instanceof StringType) {
      return FeatureSpec.Kind.BYTES;
    }
    DType dtype = TensorColumn.dtype(element).orElse(DType.F64);
    if (dtype == DType.F64) {
      throw new MisuseException(
          "column '"
              + column.name()
              + "' of type "
              + type.catalogString()
              + " does not fit tfrecord: integers, booleans, float, binary, string and arrays"
              + " of them do");
    }
    return dtype == DType.F32 ? FeatureSpec.Kind.FLOAT : FeatureSpec.Kind.INT64;
  }

  /// @throws MisuseException if no kind of feature stores a column's values, or two columns have
  ///     one name, of which a record could keep only the last
  static void requireFeatures(StructType schema) {
    Set<String> names = new HashSet<>();
    for (StructField column : schema.fields()) {
      var _ = kind(column);
      if (!names.add(column.name())) {
        throw new MisuseException("two columns have the name '" + column.name() + "'");
      }
    }
  }

  static DataType element(DataType type) {
    return type instanceof ArrayType array ? array.elementType() : type;
  }

  /// Derives the columns from the first records. A feature with exactly one value in all of them
  /// becomes a plain column, any other feature an array. The columns are sorted by name. If there
  /// are no files, there are no columns.
  ///
  /// @param most the number of records that are read
  /// @throws MalformedFileException of kind `no-records`, or `wrong-kind` where two records differ
  static StructType infer(List<Path> files, long most) {
    Schema.Look look =
        Schema.look(
            GantrySession.shared(),
            files.stream().map(Location::of).toList(),
            TfRecordOptions.defaults(),
            most);
    if (look.records() == 0 && !files.isEmpty()) {
      throw new MalformedFileException(
          files.getFirst(),
          0,
          "no-records",
          "the files have no record that tells the columns: give schema(…)");
    }
    StructType columns = new StructType();
    for (Schema.Seen seen : look.features()) {
      if (!seen.isList() && seen.kind().isPresent()) {
        DataType one =
            switch (seen.kind().get()) {
              case BYTES -> DataTypes.BinaryType;
              case FLOAT -> DataTypes.FloatType;
              case INT64 -> DataTypes.LongType;
            };
        DataType type = seen.isSingle() ? one : DataTypes.createArrayType(one, false);
        columns = columns.add(seen.name(), type);
      }
    }
    return columns;
  }

  /// Refuses misspelt names before their columns are read as nulls. Each column must occur in one
  /// of the first records, or else in some record of the first file that has records.
  ///
  /// @param most the number of first records that are read
  /// @throws MisuseException if a column does not occur; it names the first file, the column and
  ///     the present features
  static void requireThere(List<Path> files, StructType columns, long most) {
    Set<String> missing = new LinkedHashSet<>(List.of(columns.fieldNames()));
    ExampleReader features = ExampleReader.of(List.of(), ExampleReader.Limits.OF_ALL);
    long looked = 0;
    for (Path file : files) {
      boolean isFirst = looked == 0;
      try (TfRecordReader reader = open(file)) {
        while (!missing.isEmpty() && (isFirst || looked < most) && reader.next()) {
          features.read(record(reader));
          IntStream.range(0, features.size()).mapToObj(features::name).forEach(missing::remove);
          looked++;
        }
      }
    }
    if (looked > 0 && !missing.isEmpty()) {
      throw new MisuseException(
          files.getFirst()
              + " has no feature '"
              + missing.iterator().next()
              + "' in any record; they have "
              + IntStream.range(0, features.size()).mapToObj(features::name).toList());
    }
  }

  private static TfRecordReader open(Path file) {
    return TfRecordReader.open(GantrySession.shared(), file, TfRecordOptions.defaults());
  }

  static RawRecord record(TfRecordReader reader) {
    return new RawRecord(reader.file(), reader.number(), reader.offset(), reader.record());
  }
}
