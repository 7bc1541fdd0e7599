// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.columns;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import java.io.Serializable;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.BooleanType;
import org.apache.spark.sql.types.ByteType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.MetadataBuilder;
import org.apache.spark.sql.types.ShortType;
import org.apache.spark.sql.types.StructField;
import org.jspecify.annotations.Nullable;

/// A column of numbers, or of arrays of numbers with one shape, that is stored as a field of
/// samples.
///
/// @param dtype the dtype of the field's elements
/// @param scalar whether a value is one number rather than an array
/// @param shape the shape of a value, without dimensions for a scalar; null if the first row must
///     tell it
/// @param mayHaveNulls whether an array's elements may be null, as far as the schema tells
public record TensorColumn(
    String name, DType dtype, boolean scalar, @Nullable List<Long> shape, boolean mayHaveNulls)
    implements Serializable {
  /// The key of a value's shape in a column's metadata, because Spark's arrays are flat.
  public static final String SHAPE = "gantry.shape";

  /// Returns the column to write.
  ///
  /// @throws MisuseException if the column does not fit a field
  public static TensorColumn toWrite(StructField column, SourceOptions options) {
    String name = column.name();
    DataType type = column.dataType();
    Optional<List<Long>> shape = options.shape(name).or(() -> shape(column.metadata()));
    if (type instanceof BinaryType) {
      return new TensorColumn(name, DType.U8, false, shape.orElse(null), false);
    }
    if (type instanceof ArrayType array) {
      DType dtype = dtype(name, type, array.elementType());
      return new TensorColumn(name, dtype, false, shape.orElse(null), array.containsNull());
    }
    DType dtype = dtype(name, type, type);
    if (shape.isPresent() && !shape.get().isEmpty()) {
      throw new MisuseException(
          "column '" + name + "' must be of arrays to have a shape (has " + shape.get() + ")");
    }
    return new TensorColumn(name, dtype, true, List.of(), false);
  }

  /// Returns the shape of a value, if the column's metadata has it.
  public static Optional<List<Long>> shape(Metadata metadata) {
    if (!metadata.contains(SHAPE)) {
      return Optional.empty();
    }
    return Optional.of(Arrays.stream(metadata.getLongArray(SHAPE)).boxed().toList());
  }

  private static DType dtype(String column, DataType type, DataType element) {
    return dtype(element)
        .orElseThrow(() ->
            new MisuseException(
                "column '"
                    + column
                    + "' of type "
                    + type.catalogString()
                    + " does not fit gantry-shards: numbers, booleans, flat arrays of them and"
                    + " binary do"));
  }

  /// Returns the dtype of a column's numbers; empty if no dtype has this type.
  public static Optional<DType> dtype(DataType element) {
    return Optional.ofNullable(
        switch (element) {
          case BooleanType _ -> DType.BOOL;
          case ByteType _ -> DType.I8;
          case ShortType _ -> DType.I16;
          case IntegerType _ -> DType.I32;
          case LongType _ -> DType.I64;
          case FloatType _ -> DType.F32;
          case DoubleType _ -> DType.F64;
          default -> null;
        });
  }

  /// Returns a field's column.
  public static TensorColumn of(Field field) {
    List<Long> shape = Arrays.stream(field.shape().toArray()).boxed().toList();
    return new TensorColumn(field.name(), field.dtype(), shape.isEmpty(), shape, false);
  }

  /// Returns the column that a field is read as.
  ///
  /// @throws MisuseException if Spark has no type for the field, or no arrays of its length
  public static StructField toRead(Field field) {
    boolean scalar = field.shape().rank() == 0;
    long elements = field.shape().elements().orElseThrow();
    if (elements > ColumnBuffer.MOST_BYTES) {
      throw new MisuseException(
          "field '"
              + field.name()
              + "' has "
              + elements
              + " elements a sample, more than Spark's arrays; name the other columns with"
              + " schema(…)");
    }
    DataType type =
        !scalar && field.dtype() == DType.U8
            ? DataTypes.BinaryType
            : scalar ? element(field) : DataTypes.createArrayType(element(field), false);
    Metadata metadata =
        scalar
            ? Metadata.empty()
            : new MetadataBuilder().putLongArray(SHAPE, field.shape().toArray()).build();
    return new StructField(field.name(), type, false, metadata);
  }

  /// Returns the type of a field's elements. It is the next wider type if Spark has no such type.
  static DataType element(Field field) {
    return switch (field.dtype()) {
      case BOOL -> DataTypes.BooleanType;
      case I8 -> DataTypes.ByteType;
      case I16, U8 -> DataTypes.ShortType;
      case I32, U16 -> DataTypes.IntegerType;
      case I64, U32 -> DataTypes.LongType;
      case F32, F16, BF16 -> DataTypes.FloatType;
      case F64 -> DataTypes.DoubleType;
      case U64, C64, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ, F4, F6_E2M3, F6_E3M2 ->
          throw new MisuseException(
              "field '"
                  + field.name()
                  + "' is "
                  + field.dtype()
                  + ", which Spark has no type for; name the other columns with schema(…)");
    };
  }

  /// @param elements the number of elements of a row's value, which becomes the shape if that is
  ///     not known
  /// @throws MisuseException if the shape has another number of elements; this is found before any
  ///     allocation
  public TensorColumn withElements(long elements) {
    if (shape == null) {
      return new TensorColumn(name, dtype, scalar, List.of(elements), mayHaveNulls);
    }
    TensorShape known = field().shape();
    if (elements != known.elements().orElseThrow()) {
      throw unfit(elements, known);
    }
    return this;
  }

  MisuseException unfit(long elements, TensorShape known) {
    return new MisuseException(
        "column '"
            + name
            + "' has a value of "
            + elements
            + " elements, where its shape is "
            + known);
  }

  /// @throws MisuseException if the shape is not known yet
  public Field field() {
    List<Long> known = shape;
    if (known == null) {
      throw new MisuseException(
          "column '"
              + name
              + "' is an array, and no row tells its shape: give option shape."
              + name);
    }
    return new Field(
        name, dtype, TensorShape.of(known.stream().mapToLong(Long::longValue).toArray()));
  }
}
