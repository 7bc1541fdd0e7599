// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.inference;

import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import java.lang.reflect.Array;
import java.util.ArrayList;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Objects;
import java.util.Set;
import org.apache.spark.TaskContext;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.types.DoubleType;
import org.apache.spark.sql.types.IntegerType;
import org.apache.spark.sql.types.LongType;
import org.apache.spark.util.TaskCompletionListener;
import org.jspecify.annotations.Nullable;
import scala.collection.immutable.ArraySeq;

/// Iterates over a partition's rows with their answers, which it computes a batch at a time.
final class AnsweredRows implements Iterator<Row> {
  private final InferencePlan plan;
  private final List<RowColumn> columns;
  private final Iterator<Row> rows;
  private @Nullable Predictor<NDList, NDList> predictor;
  private LoadedModels.@Nullable Use use;
  private Iterator<Row> answered = List.<Row>of().iterator();

  AnsweredRows(InferencePlan plan, List<RowColumn> columns, Iterator<Row> rows) {
    this.plan = plan;
    this.columns = columns;
    this.rows = rows;
  }

  @Override
  public boolean hasNext() {
    if (!answered.hasNext() && rows.hasNext()) {
      answered = answer(batch()).iterator();
    }
    return answered.hasNext();
  }

  @Override
  public Row next() {
    if (!hasNext()) {
      throw new NoSuchElementException();
    }
    return answered.next();
  }

  private List<Row> batch() {
    List<Row> batch = new ArrayList<>(plan.batchSize());
    while (batch.size() < plan.batchSize() && rows.hasNext()) {
      batch.add(rows.next());
    }
    return batch;
  }

  /// Opens the model at the first row, so that a partition without rows loads no model.
  private Predictor<NDList, NDList> open() {
    LoadedModels.Use used = LoadedModels.use(plan, TaskDevice.get());
    use = used;
    TaskContext.get().addTaskCompletionListener((TaskCompletionListener) _ -> close());
    Predictor<NDList, NDList> opened = used.model().newPredictor(new NoopTranslator(null));
    predictor = opened;
    return opened;
  }

  private void close() {
    try (LoadedModels.Use _ = use;
        Predictor<NDList, NDList> _ = predictor) {
      use = null;
      predictor = null;
    }
  }

  private List<Row> answer(List<Row> batch) {
    Predictor<NDList, NDList> open = predictor == null ? open() : predictor;
    LoadedModels.Use used = use;
    if (used == null) {
      throw new IllegalStateException("the task has ended");
    }
    try (NDManager manager = used.model().getNDManager().newSubManager()) {
      NDList inputs = new NDList();
      for (RowColumn column : columns) {
        inputs.add(column.array(manager, batch));
      }
      try (NDList outputs = open.predict(inputs)) {
        // An input array that a block returns unchanged still has the name of its column.
        Set<NDArray> given = Collections.newSetFromMap(new IdentityHashMap<>());
        given.addAll(inputs);
        boolean named = outputs.stream().noneMatch(given::contains);
        return rows(batch, named ? byName(outputs) : byNumber(outputs));
      }
    } catch (TranslateException e) {
      throw new IllegalStateException("the model failed: " + e.getMessage(), e);
    }
  }

  private List<Row> rows(List<Row> batch, List<NDArray> wanted) {
    List<Object> answers = new ArrayList<>();
    for (int i = 0; i < wanted.size(); i++) {
      answers.add(numbers(plan.outputs().get(i), wanted.get(i), batch.size()));
    }
    List<Row> result = new ArrayList<>(batch.size());
    for (int row = 0; row < batch.size(); row++) {
      Row before = batch.get(row);
      @Nullable Object[] values = new @Nullable Object[before.length() + answers.size()];
      for (int i = 0; i < before.length(); i++) {
        values[i] = before.get(i);
      }
      for (int i = 0; i < answers.size(); i++) {
        values[before.length() + i] =
            value(plan.outputs().get(i), answers.get(i), row, batch.size());
      }
      result.add(RowFactory.create(values));
    }
    return result;
  }

  private List<NDArray> byNumber(NDList outputs) {
    if (outputs.size() != plan.outputs().size()) {
      throw new MisuseException(
          "setOutput must be called for each output of a model that does not name them: it gave "
              + outputs.size()
              + " for "
              + plan.outputs().size()
              + " columns");
    }
    return outputs;
  }

  /// Returns the output of each column by the model's own names, if all outputs have a name.
  private List<NDArray> byName(NDList outputs) {
    List<String> names =
        outputs.stream().map(NDArray::getName).filter(Objects::nonNull).distinct().toList();
    if (names.size() < outputs.size()) {
      return byNumber(outputs);
    }
    List<NDArray> wanted = new ArrayList<>();
    for (InferencePlan.Output output : plan.outputs()) {
      int number = names.indexOf(output.column());
      if (number < 0) {
        throw new MisuseException(
            "the model has no output '" + output.column() + "'; its outputs are " + names);
      }
      wanted.add(outputs.get(number));
    }
    return wanted;
  }

  /// Returns all numbers of an output as one Java array.
  private static Object numbers(InferencePlan.Output output, NDArray array, int rows) {
    boolean fits =
        array.getShape().dimension() > 0
            && array.getShape().get(0) == rows
            && (output.isArray() || array.size() == rows);
    if (!fits) {
      throw new MisuseException(
          "the model's answer for column '"
              + output.column()
              + "' has shape "
              + array.getShape()
              + " for "
              + rows
              + " rows"
              + (output.isArray() ? "" : ", which are more numbers than one a row"));
    }
    return switch (output.number()) {
      case DoubleType _ -> as(array, DataType.FLOAT64).toDoubleArray();
      case LongType _ -> as(array, DataType.INT64).toLongArray();
      case IntegerType _ -> as(array, DataType.INT32).toIntArray();
      default -> as(array, DataType.FLOAT32).toFloatArray();
    };
  }

  private static NDArray as(NDArray array, DataType type) {
    return array.getDataType() == type ? array : array.toType(type, false);
  }

  /// Returns the value of one row: a number, or an array in the form that Spark's rows hold.
  private static Object value(InferencePlan.Output output, Object numbers, int row, int rows) {
    if (!output.isArray()) {
      return Array.get(numbers, row);
    }
    int each = Array.getLength(numbers) / rows;
    Object part = Array.newInstance(numbers.getClass().getComponentType(), each);
    System.arraycopy(numbers, row * each, part, 0, each);
    return ArraySeq.unsafeWrapArray(part);
  }
}
