// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.Device;
import ai.djl.Model;
import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.spark.internal.columns.TensorColumn;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import org.apache.spark.api.java.function.MapPartitionsFunction;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.BinaryType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.FloatType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.sql.types.Metadata;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;

/// Says which columns are a model's inputs, and which columns hold its answers.
///
/// @param id identifies the model in all JVMs
public record InferencePlan(
    UUID id, Loader loader, List<Input> inputs, List<Output> outputs, int batchSize)
    implements Serializable {
  /// Loads the model on an executor.
  @FunctionalInterface
  public interface Loader extends Serializable {
    Model load(Device device) throws Exception;
  }

  /// A column that is an input of the model.
  ///
  /// @param shape the shape of a row's value; empty if the column tells it
  public record Input(String column, List<Long> shape) implements Serializable {
    /// Returns the shape of a row's value: the one that the program set, else that in the column's
    /// metadata. It is empty if neither exists, in which case an array has one axis of its own
    /// length.
    private List<Long> shape(StructField field) {
      return shape.isEmpty() ? TensorColumn.shape(field.metadata()).orElse(shape) : shape;
    }
  }

  /// A column that holds an output of the model.
  ///
  /// @param number the type of its numbers
  /// @param isArray whether a row has several numbers
  public record Output(String column, DataType type, DataType number, boolean isArray)
      implements Serializable {
    /// @throws MisuseException if an output cannot have this type
    public static Output of(String column, DataType type) {
      DataType number = type instanceof ArrayType array ? array.elementType() : type;
      boolean fits =
          switch (number) {
            case FloatType _, DoubleType _, LongType _, IntegerType _ -> true;
            default -> false;
          };
      if (!fits) {
        throw new MisuseException(
            "setOutput "
                + column
                + " must be of float, double, long, int or an array of them (was "
                + type.catalogString()
                + ")");
      }
      return new Output(column, type, number, type instanceof ArrayType);
    }
  }

  /// Returns the columns of the rows with their answers.
  public StructType answered(StructType rows) {
    StructType answered = rows;
    for (Output output : outputs) {
      if (Arrays.asList(answered.fieldNames()).contains(output.column())) {
        throw new MisuseException("column '" + output.column() + "' is there already");
      }
      answered =
          answered.add(new StructField(output.column(), output.type(), false, Metadata.empty()));
    }
    return answered;
  }

  /// Returns the function by which a task answers rows of these columns.
  public MapPartitionsFunction<Row, Row> of(StructType rows) {
    List<RowColumn> columns = new ArrayList<>();
    for (Input input : inputs) {
      int number = Arrays.asList(rows.fieldNames()).indexOf(input.column());
      if (number < 0) {
        throw new MisuseException(
            "the rows have no column '"
                + input.column()
                + "'; their columns are "
                + Arrays.toString(rows.fieldNames()));
      }
      StructField field = rows.fields()[number];
      columns.add(new RowColumn(field.name(), number, numbers(field), input.shape(field)));
    }
    List<RowColumn> all = List.copyOf(columns);
    return partition -> new AnsweredRows(this, all, partition);
  }

  private static DType numbers(StructField field) {
    DataType type = field.dataType();
    DataType number = type instanceof ArrayType array ? array.elementType() : type;
    return (number instanceof BinaryType ? Optional.of(DType.U8) : TensorColumn.dtype(number))
        .orElseThrow(() ->
            new MisuseException(
                "column '"
                    + field.name()
                    + "' of type "
                    + type.catalogString()
                    + " cannot go into a model: numbers, arrays of them and binary can"));
  }
}
