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

/// Computes a model's answers for the rows of a DataFrame, on Spark's executors.
///
/// Each executor loads the model once for each of its GPUs. All tasks that run on a GPU at the
/// same time, or within a minute of each other, share the model. A task processes its partition
/// batch by batch, and holds one batch in memory. Thread-safe.
public final class BatchInference implements AutoCloseable {
  /// The default number of rows in a batch.
  public static final int USUAL_BATCH_SIZE = 32;

  private static final int MAX_BATCH_SIZE = 1 << 16;

  private final InferencePlan plan;

  private BatchInference(InferencePlan plan) {
    this.plan = plan;
  }

  public static Builder builder() {
    return new Builder();
  }

  /// Appends the columns of the answers to those of the rows. Spark computes them lazily, when an
  /// action needs them.
  ///
  /// @throws MisuseException if an input column is missing or holds no numbers, or if an output
  ///     column already exists
  public Dataset<Row> run(Dataset<Row> rows) {
    StructType answered = plan.answered(MisuseException.requireGiven("rows", rows).schema());
    return rows.mapPartitions(plan.of(rows.schema()), Encoders.row(answered));
  }

  /// Frees the model in this JVM at once; without this call it is freed a minute after its last
  /// task. The call has an effect only if the driver is also the executor. A later [#run] loads
  /// the model again.
  @Override
  public void close() {
    LoadedModels.free(plan.id());
  }

  /// Loads a model on an executor.
  @FunctionalInterface
  public interface ModelLoader extends Serializable {
    /// @param device the GPU that Spark assigned to the task (its resource `gpu`), or the CPU
    /// @return a model on that device. Its block takes one array for each input column, with the
    ///     batch as the first axis. The model is closed when no task uses it any more
    Model load(Device device) throws Exception;
  }

  /// Builds a [BatchInference] from a model and its input and output columns. Not thread-safe.
  public static final class Builder {
    private @Nullable ModelLoader model;
    private final List<InferencePlan.Input> inputs = new ArrayList<>();
    private final List<InferencePlan.Output> outputs = new ArrayList<>();
    private int batchSize = USUAL_BATCH_SIZE;

    private Builder() {}

    /// @param loader the loader; it and all objects that it refers to must be serializable
    public Builder setModel(ModelLoader loader) {
      model = loader;
      return this;
    }

    /// Adds an input column, in the order of the model's inputs. Its values are numbers, or arrays
    /// of numbers with the same number of elements in every row.
    ///
    /// @param shape the shape of a row's value, without the batch axis; if empty, the shape in the
    ///     column's metadata (which `gantry-shards` sets), else that of the array
    public Builder setInput(String column, long... shape) {
      inputs.add(new InferencePlan.Input(column, Arrays.stream(shape).boxed().toList()));
      return this;
    }

    /// Adds a column of floats for one of the model's outputs; a row's value holds the output's
    /// numbers in C order. If the model's block names its outputs, as hub models do (`logits`,
    /// `pooler_output`), the column must have an output's name. Otherwise there must be one column
    /// for each output, in the model's order.
    public Builder setOutput(String column) {
      return setOutput(column, DataTypes.createArrayType(DataTypes.FloatType, false));
    }

    /// Adds a column of another type for one of the model's outputs, as [#setOutput(String)] does.
    ///
    /// @param type float, double, long, int, or an array of one of these
    public Builder setOutput(String column, DataType type) {
      outputs.add(InferencePlan.Output.of(column, type));
      return this;
    }

    /// Sets the most rows of one forward pass.
    public Builder optBatchSize(int rows) {
      MisuseException.requireRange("optBatchSize", rows, 1, MAX_BATCH_SIZE);
      batchSize = rows;
      return this;
    }

    /// @throws MisuseException if the model, an input or an output is missing
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
