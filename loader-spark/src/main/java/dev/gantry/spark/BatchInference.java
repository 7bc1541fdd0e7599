// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark;

import ai.djl.Device;
import ai.djl.Model;
import dev.gantry.core.MisuseException;
import dev.gantry.spark.internal.inference.InferencePlan;
import dev.gantry.spark.internal.inference.LoadedModels;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Encoders;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.jspecify.annotations.Nullable;

/// Answers of a model for the rows of a DataFrame, made by its executors.
///
/// Each executor loads the model once for each of its GPUs: all tasks that run there at the same time,
/// or within a minute of each other, share it. A task goes through its partition batch by batch, so its
/// memory is that of a batch. Thread-safe.
public final class BatchInference implements AutoCloseable {
  /// Rows of a batch, unless said otherwise.
  public static final int USUAL_BATCH_SIZE = 32;

  private static final int MOST_BATCH_SIZE = 1 << 16;

  private final InferencePlan plan;

  private BatchInference(InferencePlan plan) {
    this.plan = plan;
  }

  public static Builder builder() {
    return new Builder();
  }

  /// Adds the answers' columns behind those of the rows. As with all that Spark does, they are made when
  /// an action wants them.
  ///
  /// @throws MisuseException if a column that the model takes is not there or is of no numbers, or one
  ///     that it makes is there already
  public Dataset<Row> run(Dataset<Row> rows) {
    StructType answered = plan.answered(rows.schema());
    return rows.mapPartitions(plan.of(rows.schema()), Encoders.row(answered));
  }

  /// Frees the model in this JVM, as it is freed on an executor a minute after its last task: of use
  /// where the driver is the executor. A later [#run] loads it again.
  @Override
  public void close() {
    LoadedModels.free(plan.id());
  }

  /// Loads a model, on an executor.
  @FunctionalInterface
  public interface ModelLoader extends Serializable {
    /// @param device the GPU that Spark gave the task (its resource `gpu`), or the CPU
    /// @return a model of that device, with a block that takes an array for each input column, whose
    ///     first axis is the batch. It is closed when it is not used any more
    Model load(Device device) throws Exception;
  }

  /// Says what goes into the model and what comes out.
  public static final class Builder {
    private @Nullable ModelLoader model;
    private final List<InferencePlan.Input> inputs = new ArrayList<>();
    private final List<InferencePlan.Output> outputs = new ArrayList<>();
    private int batchSize = USUAL_BATCH_SIZE;

    private Builder() {}

    /// @param loader that refers to nothing which cannot be serialized
    public Builder setModel(ModelLoader loader) {
      model = loader;
      return this;
    }

    /// Adds a column that the model takes, in the order in which it takes them: a number, or an array of
    /// them that has as many elements in every row.
    ///
    /// @param shape of a row's value without the batch, or none for that of the column's metadata (as
    ///     `gantry-shards` has it) or else of the array
    public Builder setInput(String column, long... shape) {
      inputs.add(new InferencePlan.Input(column, Arrays.stream(shape).boxed().toList()));
      return this;
    }

    /// Adds a column for one of the model's outputs, of floats: those of a row one after the other. Where
    /// the model's block gives its outputs names, as those of hub models do (`logits`, `pooler_output`), the column
    /// has the name of the output. Else there must be a column for each output, in the model's order.
    public Builder setOutput(String column) {
      return setOutput(column, DataTypes.createArrayType(DataTypes.FloatType, false));
    }

    /// As [#setOutput(String)].
    ///
    /// @param type float, double, long, int, or an array of one of them
    public Builder setOutput(String column, DataType type) {
      outputs.add(InferencePlan.Output.of(column, type));
      return this;
    }

    /// How many rows go through the model at once, at most.
    public Builder optBatchSize(int rows) {
      MisuseException.requireRange("optBatchSize", rows, 1, MOST_BATCH_SIZE);
      batchSize = rows;
      return this;
    }

    /// @throws MisuseException if there is no model, no input or no output
    public BatchInference build() {
      ModelLoader loader = model;
      if (loader == null) {
        throw new MisuseException("setModel must be given (was null)");
      }
      if (inputs.isEmpty() || outputs.isEmpty()) {
        throw new MisuseException(
            "setInput and setOutput must be given (were "
                + inputs.size()
                + " and "
                + outputs.size()
                + " columns)");
      }
      return new BatchInference(
          new InferencePlan(
              UUID.randomUUID(),
              loader::load,
              List.copyOf(inputs),
              List.copyOf(outputs),
              batchSize));
    }
  }
}
