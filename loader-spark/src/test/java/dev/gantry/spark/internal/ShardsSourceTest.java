// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.encode;
import static org.apache.spark.sql.functions.format_string;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.sum;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.DataFrameWriter;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF1;
import org.apache.spark.sql.functions;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Writes DataFrames as raw tensor shards and reads them back, in one JVM.
@ExtendWith(NoLeaks.class)
class ShardsSourceTest {
  private static final String FORMAT = "gantry-shards";
  private static final SparkSession SPARK = LocalSpark.session();

  @TempDir Path folder;

  @AfterEach
  void awaitTasks() throws InterruptedException, TimeoutException {
    LocalSpark.awaitTasks();
  }

  private static Dataset<Row> samples(long rows) {
    return SPARK
        .range(0, rows, 1, 4)
        .select(
            col("id"),
            col("id").cast("int").as("label"),
            col("id").mod(100).cast("byte").as("small"),
            col("id").mod(10_000).cast("short").as("short"),
            col("id").mod(2).equalTo(0).as("even"),
            col("id").cast("double").as("double"),
            array(col("id").cast("float"), lit(0.5f), lit(-1f), lit(4f)).as("pixels"),
            array(col("id"), lit(7L)).as("pair"),
            array(col("id").mod(2).equalTo(0), lit(true)).as("flags"),
            array(col("id").mod(100).cast("byte"), lit((byte) -3)).as("i8"),
            array(col("id").mod(10_000).cast("short"), lit((short) -3)).as("i16"),
            array(col("id").cast("int"), lit(-3)).as("i32"),
            array(col("id").cast("double"), lit(-0.3)).as("f64"),
            encode(format_string("%08d", col("id")), "UTF-8").as("bytes"));
  }

  private Dataset<Row> read(Path set) {
    return SPARK.read().format(FORMAT).load(set.toString());
  }

  @Test
  void rowsComeBackAsTheyWere() {
    Path set = folder.resolve("set");
    samples(10_000).write().format(FORMAT).option("shape.pixels", "2,2").save(set.toString());

    assertThat(read(set).orderBy("id").collectAsList()).isEqualTo(samples(10_000).collectAsList());
    ShardSet written = ShardSet.open(set);
    written.verify();
    assertThat(written.samples()).isEqualTo(10_000);
    assertThat(written.shards()).hasSize(4);
    assertThat(written.fields())
        .contains(
            new Field("pixels", DType.F32, TensorShape.of(2, 2)),
            new Field("pair", DType.I64, TensorShape.of(2)),
            new Field("even", DType.BOOL, TensorShape.of()),
            new Field("bytes", DType.U8, TensorShape.of(8)));
    assertThat(names(set)).hasSize(5).contains("shards.json");
  }

  /// A task's buffers hold at most 4,096 rows.
  @Test
  void aPartitionMayHaveMoreRowsThanATasksBuffers() {
    Path set = folder.resolve("set");
    SPARK.range(0, 10_000, 1, 1).write().format(FORMAT).save(set.toString());
    assertThat(read(set).agg(sum("id")).head().getLong(0)).isEqualTo(10_000L * 9999 / 2);
    assertThat(ShardSet.open(set).samples()).isEqualTo(10_000);
  }

  @Test
  void onlyColumnsOfTheQueryAreRead() {
    Path set = folder.resolve("set");
    samples(5000).write().format(FORMAT).option("samplesPerShard", 700).save(set.toString());

    Dataset<Row> sum =
        SPARK
            .read()
            .format(FORMAT)
            .option("partitionBytes", 1000)
            .load("file:" + set)
            .agg(sum("label"));
    assertThat(sum.queryExecution().toString()).contains("struct<label:int>");
    Dataset<Row> labels = read(set).select("label");
    // Spark decides by a size whether it sends a table to all executors.
    assertThat(labels.queryExecution().optimizedPlan().stats().sizeInBytes().toLong())
        .isEqualTo(5000 * Integer.BYTES);
    assertThat(labels.rdd().getNumPartitions()).isEqualTo(8);
    assertThat(sum.head().getLong(0)).isEqualTo(5000L * 4999 / 2);
    assertThat(read(set).count()).isEqualTo(5000);
  }

  @Test
  void shapesAreKeptOnTheWayThroughSpark() {
    Path set = folder.resolve("set");
    Path copy = folder.resolve("copy");
    samples(10).write().format(FORMAT).option("shape.pixels", "2,2").save(set.toString());

    read(set).select("pixels").write().format(FORMAT).save(copy.toString());
    assertThat(ShardSet.open(copy).fields())
        .containsExactly(new Field("pixels", DType.F32, TensorShape.of(2, 2)));
  }

  @Test
  void otherTypesAreWidened() {
    Path set = folder.resolve("set");
    List<Field> fields =
        List.of(
            new Field("half", DType.F16, TensorShape.of(2)),
            new Field("brain", DType.BF16, TensorShape.of()),
            new Field("u8", DType.U8, TensorShape.of()),
            new Field("u16", DType.U16, TensorShape.of()),
            new Field("u32", DType.U32, TensorShape.of()),
            new Field("u64", DType.U64, TensorShape.of()));
    try (ShardWriter writer = ShardWriter.create(set, fields, ShardOptions.defaults())) {
      writer.append(
          Map.of(
              "half",
              MemorySegment.ofArray(
                  new short[] {Float.floatToFloat16(1.5f), Float.floatToFloat16(-2)}),
              "brain",
              MemorySegment.ofArray(new short[] {(short) (Float.floatToIntBits(3) >>> 16)}),
              "u8",
              MemorySegment.ofArray(new byte[] {-1}),
              "u16",
              MemorySegment.ofArray(new short[] {-1}),
              "u32",
              MemorySegment.ofArray(new int[] {-1}),
              "u64",
              MemorySegment.ofArray(new long[] {-1})));
      ShardSet _ = writer.finish();
    }

    assertThatThrownBy(() -> read(set))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "field 'u64' is U64, which Spark has no type for; name the other columns with"
                + " schema(…)");
    Row row =
        SPARK
            .read()
            .format(FORMAT)
            .schema("half array<float>, brain float, u8 short, u16 int, u32 long")
            .load(set.toString())
            .head();
    assertThat(row.<Float>getList(0)).containsExactly(1.5f, -2f);
    assertThat(row.getFloat(1)).isEqualTo(3);
    assertThat(row.getShort(2)).isEqualTo((short) 255);
    assertThat(row.getInt(3)).isEqualTo(65_535);
    assertThat(row.getLong(4)).isEqualTo(4_294_967_295L);
  }

  @Test
  void aShapeOfNoColumnIsRefused() {
    Path set = folder.resolve("set");
    assertThatThrownBy(() ->
            SPARK
                .range(3)
                .write()
                .format(FORMAT)
                .option("shape.picture", "28,28")
                .save(set.toString()))
        .hasStackTraceContaining(
            "MisuseException: option shape.picture names no column; the columns are [id]");
    assertThat(set).doesNotExist();
  }

  @Test
  void aFolderThatIsNotEmptyIsRefusedAndLeftAlone() throws IOException {
    Path set = Files.createDirectory(folder.resolve("set"));
    Path other = Files.writeString(set.resolve("notes.txt"), "mine");

    assertThatThrownBy(() -> samples(10).write().format(FORMAT).save(set.toString()))
        .isInstanceOf(MisuseException.class)
        .hasMessage(set + " is not empty: name another place, or mode(\"overwrite\")");
    samples(10).write().format(FORMAT).mode("ignore").save(set.toString());
    assertThat(names(set)).containsExactly("notes.txt");
    assertThatThrownBy(() -> samples(10).write().format(FORMAT).mode("append").save(set.toString()))
        .hasMessageContaining("append");
    samples(10).write().format(FORMAT).mode("overwrite").save(set.toString());
    assertThat(read(set).count()).isEqualTo(10);
    assertThat(other).hasContent("mine");
  }

  @Test
  void overwritingReplacesOurSetOnly() throws IOException {
    Path set = folder.resolve("set");
    samples(100).write().format(FORMAT).save(set.toString());
    Files.writeString(set.resolve("notes.txt"), "mine");

    // The write replaces the set that it reads.
    read(set).where("id < 10").write().format(FORMAT).mode("overwrite").save(set.toString());
    assertThat(read(set).orderBy("id").collectAsList()).isEqualTo(samples(10).collectAsList());
    assertThat(names(set)).hasSize(ShardSet.open(set).shards().size() + 2).contains("notes.txt");

    samples(20).write().format(FORMAT).mode("overwrite").save(set.toString());
    assertThat(read(set).count()).isEqualTo(20);
    assertThat(names(set)).hasSize(ShardSet.open(set).shards().size() + 2);
    ShardSet.open(set).verify();
  }

  /// The set is replaced twice, because even the second replacement must not bring back the names
  /// of the first set's files.
  @Test
  void aKeptDataFrameDoesNotReadTheSetThatTookTheOthersPlace() {
    Path set = folder.resolve("set");
    samples(100).write().format(FORMAT).save(set.toString());
    Dataset<Row> kept = read(set);
    assertThat(kept.collectAsList()).hasSize(100);
    List<String> before = names(set);
    for (int i = 1; i <= 2; i++) {
      samples(100)
          .withColumn("id", col("id").plus(1000 * i))
          .write()
          .format(FORMAT)
          .mode("overwrite")
          .save(set.toString());
      assertThatThrownBy(kept::collectAsList)
          .hasStackTraceContaining("changed-meanwhile")
          .hasStackTraceContaining("since the query was planned; load the DataFrame again");
      assertThat(names(set)).filteredOn(before::contains).containsExactly("shards.json");
    }
  }

  /// A driver that ends during its commit leaves such a folder.
  @Test
  void halfASetIsNoneAndTheNextWriterReplacesIt() throws IOException {
    Path set = folder.resolve("set");
    samples(30).write().format(FORMAT).save(set.toString());
    Path unfinished = Files.createDirectory(set.resolve(".gantry-unfinished"));
    Files.move(set.resolve("shards.json"), unfinished.resolve("shards.json"));
    assertThatThrownBy(() -> read(set)).hasMessageContaining("the folder has no shards.json");

    samples(10).write().format(FORMAT).mode("ignore").save(set.toString());
    assertThat(read(set).count()).isEqualTo(10);
    assertThat(names(set)).hasSize(ShardSet.open(set).shards().size() + 1);
  }

  /// The row fails after its task has appended other rows.
  @Test
  void aFailedJobLeavesNothing() {
    Path set = folder.resolve("set");
    Column broken =
        functions
            .udf(
                (UDF1<Long, Long>)
                    id -> {
                      if (id == 4777) {
                        throw new IllegalStateException("row 4777");
                      }
                      return id;
                    },
                DataTypes.LongType)
            .apply(col("id"));
    Dataset<Row> data = SPARK.range(0, 20_000, 1, 4).select(broken.as("id"));

    assertThatThrownBy(() -> data.write().format(FORMAT).save(set.toString()))
        .hasStackTraceContaining("row 4777");
    assertThat(set).doesNotExist();

    samples(100).write().format(FORMAT).save(set.toString());
    List<String> before = names(set);
    assertThatThrownBy(() -> data.write().format(FORMAT).mode("overwrite").save(set.toString()))
        .hasStackTraceContaining("row 4777");
    assertThat(names(set)).isEqualTo(before);
    assertThat(read(set).count()).isEqualTo(100);
  }

  static Stream<Arguments> misfits() {
    return Stream.of(
        Arguments.of(lit("text"), "column 'c' of type string does not fit gantry-shards"),
        Arguments.of(array(array(lit(1))), "column 'c' of type array<array<int>> does not fit"),
        Arguments.of(when(col("id").equalTo(5), lit(null)).otherwise(1), "column 'c' has a null"),
        Arguments.of(when(col("id").gt(0), array(lit(1))), "column 'c' has a null"),
        Arguments.of(
            array(lit(1), when(col("id").equalTo(5), lit(null)).otherwise(2)),
            "column 'c' has a null"),
        Arguments.of(
            when(col("id").equalTo(5), array(lit(1))).otherwise(array(lit(1), lit(2))),
            "column 'c' has a value of 1 elements, where its shape is [2]"));
  }

  @ParameterizedTest
  @MethodSource("misfits")
  void whatDoesNotFitIsSaidInOneLine(Column column, String message) {
    Path set = folder.resolve("set");
    Dataset<Row> data = SPARK.range(0, 10, 1, 1).select(column.as("c"));
    assertThatThrownBy(() -> data.write().format(FORMAT).save(set.toString()))
        .hasStackTraceContaining("MisuseException: " + message);
    assertThat(set).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = ';',
      textBlock =
          """
          3; column 'pixels' has a value of 4 elements, where its shape is [3]
          2147483647,4; column 'pixels' has a value of 4 elements, where its shape is [2147483647, 4]
          1073741824,1073741824; column 'pixels' has a value of 4 elements, where its shape is
          9223372036854775807; field 'pixels': F32 [9223372036854775807] is too large
          """)
  void aShapeThatTheRowsDoNotHaveIsRefusedBeforeItsMemoryIsTaken(String shape, String message) {
    Path set = folder.resolve("set");
    DataFrameWriter<Row> writer =
        samples(10).select("even", "pixels").write().format(FORMAT).option("shape.pixels", shape);
    assertThatThrownBy(() -> writer.save(set.toString()))
        .hasStackTraceContaining("MisuseException: " + message);
    assertThat(set).doesNotExist();
  }

  @Test
  void noRowsAreASetToo() {
    Path set = folder.resolve("set");
    samples(0).select("id", "even").write().format(FORMAT).save(set.toString());
    assertThat(read(set).collectAsList()).isEmpty();

    assertThatThrownBy(() ->
            samples(0)
                .select("pixels")
                .write()
                .format(FORMAT)
                .save(folder.resolve("other").toString()))
        .hasStackTraceContaining("give option shape.pixels");
    assertThat(folder.resolve("other")).doesNotExist();
  }

  @Test
  void partitionsDisagreeingOnAShapeAreRefused() {
    Path set = folder.resolve("set");
    Dataset<Row> data =
        SPARK
            .range(0, 10, 1, 2)
            .select(when(col("id").lt(5), array(lit(1))).otherwise(array(lit(1), lit(2))).as("c"));
    assertThatThrownBy(() -> data.write().format(FORMAT).save(set.toString()))
        .hasStackTraceContaining("has the fields");
    assertThat(set).doesNotExist();
  }

  @Test
  void whatIsNotThereIsSaid() {
    assertThatThrownBy(() -> SPARK.read().format(FORMAT).load("s3://bucket/set"))
        .hasMessageContaining(
            "path must be of a file system that the driver and all executors see");
    assertThatThrownBy(() -> read(folder)).hasMessageContaining("the folder has no shards.json");
    Path set = folder.resolve("set");
    samples(3).write().format(FORMAT).save(set.toString());
    assertThatThrownBy(
            () -> SPARK.read().format(FORMAT).schema("id int").load(set.toString()).collectAsList())
        .hasStackTraceContaining("column 'id' is bigint (was asked for as int)");
    assertThat(
            SPARK
                .createDataFrame(List.of(RowFactory.create(1L)), read(set).select("id").schema())
                .count())
        .isEqualTo(1);
  }

  private static List<String> names(Path folder) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
