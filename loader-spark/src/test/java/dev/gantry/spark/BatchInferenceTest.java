// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark;

import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.offset;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.inference.Predictor;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Block;
import ai.djl.nn.LambdaBlock;
import ai.djl.nn.Parameter;
import ai.djl.nn.SequentialBlock;
import ai.djl.nn.core.Linear;
import ai.djl.training.initializer.NormalInitializer;
import ai.djl.translate.NoopTranslator;
import ai.djl.translate.TranslateException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.LoadReport;
import dev.gantry.djl.ParameterNames;
import dev.gantry.djl.Weights;
import dev.gantry.djl.WeightsWriter;
import dev.gantry.spark.internal.LocalSpark;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Compares the answers of executors with those of one process.
@ExtendWith(NoLeaks.class)
class BatchInferenceTest {
  private static final SparkSession SPARK = LocalSpark.session();
  private static final AtomicInteger LOADS = new AtomicInteger();

  @TempDir Path folder;

  private static Block block() {
    return new SequentialBlock()
        .add(Linear.builder().setUnits(16).build())
        .add(list -> new NDList(list.singletonOrThrow().tanh()))
        .add(Linear.builder().setUnits(3).build());
  }

  /// Loads a model as a user's program does.
  private static Model model(String weights, Device device) {
    LOADS.incrementAndGet();
    Model model = Model.newInstance("small", device);
    model.setBlock(block());
    try (Weights opened = Weights.open(Path.of(weights))) {
      LoadReport _ =
          opened.load(
              model.getNDManager(),
              model.getBlock(),
              ParameterNames.same(),
              LoadOptions.defaults(),
              new Shape(1, 4));
    }
    return model;
  }

  private String weights() {
    Path file = folder.resolve("model.safetensors");
    try (NDManager manager = NDManager.newBaseManager()) {
      Block block = block();
      block.setInitializer(new NormalInitializer(), Parameter.Type.WEIGHT);
      block.initialize(manager, DataType.FLOAT32, new Shape(1, 4));
      WeightsWriter.builder().setFile(file).build().write(block, ParameterNames.same());
      block.clear();
    }
    return file.toString();
  }

  private static float[] features(long id) {
    return new float[] {id / 100f, 1, id % 7, -0.5f};
  }

  private static Dataset<Row> rows(long count) {
    return SPARK
        .range(0, count, 1, 4)
        .select(
            col("id"),
            array(
                    col("id").cast("float").divide(lit(100f)).cast("float"),
                    lit(1f),
                    col("id").mod(7).cast("float"),
                    lit(-0.5f))
                .as("features"));
  }

  @Test
  void answersAreThoseOfOneProcessAndTheModelIsLoadedOnce() throws TranslateException {
    String weights = weights();
    LOADS.set(0);
    List<Row> answered;
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> model(weights, device))
            .setInput("features")
            .setOutput("scores")
            .optBatchSize(8)
            .build()) {
      Dataset<Row> all = inference.run(rows(100));
      assertThat(all.schema().catalogString())
          .isEqualTo("struct<id:bigint,features:array<float>,scores:array<float>>");
      answered = all.orderBy("id").collectAsList();
      assertThat(all.count()).isEqualTo(100);
      assertThat(inference.run(rows(0)).collectAsList()).isEmpty();
      assertThat(LOADS).hasValue(1);
    }
    assertThat(answered).hasSize(100);
    try (Model model = model(weights, Device.cpu());
        Predictor<NDList, NDList> predictor = model.newPredictor(new NoopTranslator(null))) {
      for (Row row : answered) {
        try (NDArray question =
                model.getNDManager().create(features(row.getLong(0)), new Shape(1, 4));
            NDList answer = predictor.predict(new NDList(question))) {
          float[] expected = answer.singletonOrThrow().toFloatArray();
          List<Float> scores = row.getList(2);
          for (int i = 0; i < expected.length; i++) {
            assertThat(scores.get(i)).isCloseTo(expected[i], offset(1e-5f));
          }
        }
      }
    }
  }

  private static final CountDownLatch BEGUN = new CountDownLatch(1);
  private static final CountDownLatch CLOSED = new CountDownLatch(1);

  @Test
  void closingDoesNotTakeTheModelFromATask() throws Exception {
    BatchInference inference =
        BatchInference.builder()
            .setModel(device -> {
              Model model = Model.newInstance("slow", device);
              model.setBlock(
                  new LambdaBlock(list -> {
                    BEGUN.countDown();
                    Latches.await(CLOSED);
                    return new NDList(list.head().add(1));
                  }));
              return model;
            })
            .setInput("features")
            .setOutput("scores")
            .optBatchSize(1)
            .build();
    CompletableFuture<List<Row>> answers =
        CompletableFuture.supplyAsync(
            () -> inference.run(rows(3).coalesce(1)).select("scores").collectAsList());
    Latches.await(BEGUN);
    inference.close();
    CLOSED.countDown();
    assertThat(answers.get(60, TimeUnit.SECONDS)).hasSize(3);
    inference.close();
  }

  @Test
  void inputsAndAnswersHaveTheTypesThatTheirColumnsSay() {
    Dataset<Row> rows =
        SPARK
            .range(0, 10, 1, 2)
            .select(
                col("id"),
                col("id").cast("short").as("short"),
                array(lit(1.0), lit(2.0), lit(3.0), lit(4.0)).as("square"),
                lit(new byte[] {1, -1}).as("bytes"),
                col("id").mod(2).equalTo(0).as("even"));
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> described(device))
            .setInput("id")
            .setInput("short")
            .setInput("square", 2, 2)
            .setInput("bytes")
            .setInput("even")
            .setOutput("next", DataTypes.LongType)
            .setOutput("sum", DataTypes.DoubleType)
            .setOutput("shape", DataTypes.createArrayType(DataTypes.IntegerType))
            .optBatchSize(3)
            .build()) {
      Row row = inference.run(rows).where("id = 4").select("next", "sum", "shape").head();
      assertThat(row.getLong(0)).isEqualTo(5);
      assertThat(row.getDouble(1)).isEqualTo(4 + 10 + 256 + 1);
      assertThat(row.<Integer>getList(2)).containsExactly(2, 2);
    }
  }

  /// Makes a model of five inputs with three outputs: the first input plus one, the sums of the
  /// other inputs' rows, and the shape of the third input's rows.
  private static Model described(Device device) {
    Model model = Model.newInstance("described", device);
    model.setBlock(
        new LambdaBlock(list -> {
          NDArray sum = list.get(1).toType(DataType.FLOAT64, false);
          sum = sum.add(list.get(2).sum(new int[] {1, 2}));
          sum = sum.add(list.get(3).toType(DataType.FLOAT64, false).sum(new int[] {1}));
          sum = sum.add(list.get(4).toType(DataType.FLOAT64, false));
          long rows = list.get(0).getShape().get(0);
          NDArray shape =
              list.getManager()
                  .create(list.get(2).getShape().slice(1).getShape())
                  .reshape(1, 2)
                  .broadcast(rows, 2);
          return new NDList(list.get(0).add(1), sum, shape);
        }));
    return model;
  }

  /// Makes a model with two outputs, of ones and of twos.
  ///
  /// @param names the names of the outputs; none for outputs without names
  private static Model onesAndTwos(Device device, String... names) {
    Model model = Model.newInstance("two", device);
    model.setBlock(
        new LambdaBlock(list -> {
          NDArray rows = list.head().onesLike();
          NDList outputs = new NDList(rows, rows.mul(2));
          for (int i = 0; i < names.length; i++) {
            outputs.get(i).setName(names[i]);
          }
          return outputs;
        }));
    return model;
  }

  private static Row ask(BatchInference.ModelLoader loader, String... outputs) {
    BatchInference.Builder builder = BatchInference.builder().setModel(loader).setInput("features");
    for (String output : outputs) {
      builder.setOutput(output);
    }
    try (BatchInference inference = builder.build()) {
      Column[] columns =
          Arrays.stream(outputs).map(output -> col(output).getItem(0)).toArray(Column[]::new);
      return inference.run(rows(3).coalesce(1)).select(columns).head();
    }
  }

  @Test
  void outputsAreSelectedByTheModelsOwnNamesWhereItHasThem() {
    BatchInference.ModelLoader named =
        device -> onesAndTwos(device, "last_hidden_state", "pooler_output");
    assertThat(ask(named, "last_hidden_state", "pooler_output"))
        .isEqualTo(RowFactory.create(1f, 2f));
    assertThat(ask(named, "pooler_output", "last_hidden_state"))
        .isEqualTo(RowFactory.create(2f, 1f));
    assertThat(ask(named, "pooler_output")).isEqualTo(RowFactory.create(2f));
    assertThatThrownBy(() -> ask(named, "pooled", "last_hidden_state"))
        .hasStackTraceContaining(
            "the model has no output 'pooled'; its outputs are [last_hidden_state, pooler_output]");
  }

  @Test
  void inputsHaveTheNamesOfTheirColumns() {
    BatchInference.ModelLoader byName =
        device -> {
          Model model = Model.newInstance("by name", device);
          model.setBlock(new LambdaBlock(list -> new NDList(list.get("features").add(1))));
          return model;
        };
    assertThat(ask(byName, "answer")).isEqualTo(RowFactory.create(1f));
    BatchInference.ModelLoader handedOn =
        device -> {
          Model model = Model.newInstance("handed on", device);
          model.setBlock(new LambdaBlock(list -> list));
          return model;
        };
    assertThat(ask(handedOn, "answer")).isEqualTo(RowFactory.create(0f));
  }

  @Test
  void withoutNamesOfTheModelThereMustBeAColumnForEachOutput() {
    assertThat(ask(BatchInferenceTest::onesAndTwos, "a", "b")).isEqualTo(RowFactory.create(1f, 2f));
    assertThat(ask(device -> onesAndTwos(device, "x", "x"), "a", "b"))
        .isEqualTo(RowFactory.create(1f, 2f));
    for (String[] outputs : new String[][] {{"a"}, {"a", "b", "c"}}) {
      assertThatThrownBy(() -> ask(BatchInferenceTest::onesAndTwos, outputs))
          .hasStackTraceContaining("it gave 2 for " + outputs.length + " columns");
    }
  }

  @Test
  void whatDoesNotFitIsSaidInOneLine() {
    String weights = weights();
    BatchInference.Builder builder =
        BatchInference.builder()
            .setModel(device -> model(weights, device))
            .setInput("features")
            .setOutput("score", DataTypes.FloatType);
    assertThatThrownBy(() -> builder.setOutput("x", DataTypes.StringType))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "setOutput x must be of float, double, long, int or an array of them (was string)");
    try (BatchInference inference = builder.build()) {
      assertThatThrownBy(() -> inference.run(null)).hasMessage("rows must be given (was null)");
      assertThatThrownBy(() -> inference.run(rows(3).select("id")))
          .isInstanceOf(MisuseException.class)
          .hasMessage("the rows have no column 'features'; their columns are [id]");
      assertThatThrownBy(() -> inference.run(rows(3).withColumn("score", lit(1))))
          .isInstanceOf(MisuseException.class)
          .hasMessage("column 'score' is there already");
      assertThatThrownBy(() -> inference.run(rows(3).withColumn("features", lit("text"))))
          .hasMessageContaining("column 'features' of type string cannot go into a model");
      assertThatThrownBy(() -> inference.run(rows(3).coalesce(1)).collectAsList())
          .hasStackTraceContaining("which are more numbers than one a row");
      assertThatThrownBy(() ->
              inference
                  .run(
                      rows(3)
                          // With several tasks, another task might still be loading the model
                          // when the job fails.
                          .coalesce(1)
                          .withColumn("features", when(col("id").gt(0), col("features"))))
                  .collectAsList())
          .hasStackTraceContaining("column 'features' has a null, which no model takes");
      assertThatThrownBy(() ->
              inference
                  .run(
                      rows(3)
                          .coalesce(1)
                          .withColumn(
                              "features",
                              when(col("id").lt(2), col("features")).otherwise(array(lit(1f)))))
                  .collectAsList())
          .hasStackTraceContaining("column 'features' has a value of 1 elements, not 4");
    }
    try (BatchInference shaped =
        BatchInference.builder()
            .setModel(device -> model(weights, device))
            .setInput("features", 3)
            .setOutput("scores")
            .build()) {
      assertThatThrownBy(() -> shaped.run(rows(3).coalesce(1)).collectAsList())
          .hasStackTraceContaining("column 'features' has a value of 4 elements, not 3");
    }
    assertThatThrownBy(() -> builder.optBatchSize(0))
        .isInstanceOf(MisuseException.class)
        .hasMessage("optBatchSize must be 1 to 65536 (was 0)");
    assertThatThrownBy(() -> BatchInference.builder().build())
        .isInstanceOf(MisuseException.class)
        .hasMessage("setModel must be given (was null)");
    assertThatThrownBy(() ->
            BatchInference.builder()
                .setModel(device -> model(weights, device))
                .setInput("features")
                .build())
        .isInstanceOf(MisuseException.class)
        .hasMessage("setInput and setOutput must be given (were 1 and 0 columns)");
  }

  @Test
  void aModelThatCannotBeLoadedFailsTheJobWithItsReason() {
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> {
              throw new IOException("no weights on " + device);
            })
            .setInput("features")
            .setOutput("scores")
            .build()) {
      assertThatThrownBy(() -> inference.run(rows(3).coalesce(1)).collectAsList())
          .hasStackTraceContaining("the model cannot be loaded: no weights on cpu()");
    }
  }

  /// Otherwise rows would get parts of other rows' answers.
  @Test
  void anAnswerWithoutAnElementForEachRowIsRefused() {
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> {
              Model model = Model.newInstance("sum", device);
              model.setBlock(
                  new SequentialBlock()
                      .add(list -> new NDList(list.singletonOrThrow().sum(new int[] {0}))));
              return model;
            })
            .setInput("features")
            .setOutput("scores")
            .build()) {
      assertThatThrownBy(() -> inference.run(rows(2).coalesce(1)).collectAsList())
          .hasStackTraceContaining(
              "the model's answer for column 'scores' has shape (4) for 2 rows");
    }
  }

  /// The model that [#later] made last.
  private static volatile @Nullable Model made;

  private static Model later(String weights, Device device) throws IOException {
    if (made == null) {
      made = Model.newInstance("none", device);
      throw new IOException("not yet");
    }
    Model model = model(weights, device);
    made = model;
    return model;
  }

  @Test
  void aModelThatIsLoadedAfterAFailureIsClosedToo() throws Exception {
    String weights = weights();
    made = null;
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> later(weights, device))
            .setInput("features")
            .setOutput("scores")
            .build()) {
      assertThatThrownBy(() -> inference.run(rows(3).coalesce(1)).collectAsList())
          .hasStackTraceContaining("the model cannot be loaded: not yet");
      Objects.requireNonNull(made).close();
      assertThat(inference.run(rows(3).coalesce(1)).collectAsList()).hasSize(3);
      LocalSpark.awaitTasks();
    }
    assertThat(Objects.requireNonNull(made).getNDManager().isOpen()).isFalse();
  }
}
