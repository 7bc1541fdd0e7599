// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.encode;
import static org.apache.spark.sql.functions.format_string;
import static org.apache.spark.sql.functions.lit;
import static org.apache.spark.sql.functions.raise_error;
import static org.apache.spark.sql.functions.when;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/// Writes DataFrames as TFRecord files and reads them back, in one JVM.
@ExtendWith(NoLeaks.class)
class TfRecordSourceTest {
  private static final String FORMAT = "tfrecord";
  private static final SparkSession SPARK = LocalSpark.session();

  @TempDir Path folder;

  @AfterEach
  void awaitTasks() throws InterruptedException, TimeoutException {
    LocalSpark.awaitTasks();
  }

  /// Returns rows whose columns have the order and types that the reader infers: the columns are
  /// sorted by name.
  private static Dataset<Row> samples(long rows) {
    return SPARK
        .range(0, rows, 1, 3)
        .select(
            encode(format_string("%d", col("id")), "UTF-8").as("bytes"),
            array(col("id").cast("float"), lit(0.5f)).as("floats"),
            col("id"),
            when(col("id").mod(3).equalTo(0), array(col("id"), lit(-7L)))
                .otherwise(array(col("id")))
                .as("longs"),
            when(col("id").mod(2).equalTo(0), col("id").cast("float")).as("sometimes"),
            array(encode(lit("a"), "UTF-8"), encode(lit(""), "UTF-8")).as("strings"));
  }

  /// Returns the rows as text, because byte arrays within arrays are not compared by their
  /// contents.
  private static List<String> text(Dataset<Row> rows) {
    return rows.toJSON().collectAsList();
  }

  private Dataset<Row> read(Path set) {
    return SPARK.read().format(FORMAT).load(set.toString());
  }

  @ParameterizedTest
  @EnumSource
  void rowsComeBackAsTheyWere(Compression compression) throws IOException {
    Path set = folder.resolve("set");
    samples(1000)
        .write()
        .format(FORMAT)
        .option("compression", compression.name())
        .save(set.toString());

    Dataset<Row> back = read(set);
    assertThat(back.schema().catalogString())
        .isEqualTo(
            "struct<bytes:binary,floats:array<float>,id:bigint,longs:array<bigint>,"
                + "sometimes:float,strings:array<binary>>");
    assertThat(text(back.orderBy("id"))).isEqualTo(text(samples(1000)));
    assertThat(back.count()).isEqualTo(1000);
    List<Path> files = files(set, ".tfrecord");
    assertThat(files(set, "_gantry-files")).hasSize(1);
    if (compression == Compression.NONE) {
      assertThat(files).hasSize(6);
      assertThat(TfRecordIndex.open(files.getFirst(), GantrySession.shared()))
          .isInstanceOfSatisfying(TfRecordIndex.Found.Usable.class, found -> found.index().close());
    } else {
      assertThat(files).hasSize(3);
    }
  }

  @Test
  void aFileWithAnIndexIsReadByManyTasks() {
    Path set = folder.resolve("set");
    samples(1000).coalesce(1).write().format(FORMAT).save(set.toString());
    Dataset<Row> back =
        SPARK.read().format(FORMAT).option("partitionBytes", 20_000).load(set.toString());
    assertThat(back.rdd().getNumPartitions()).isGreaterThan(3);
    assertThat(text(back)).isEqualTo(text(samples(1000)));
    assertThat(back.select("id").queryExecution().toString()).contains("struct<id:bigint>");
  }

  /// Records have only one type of integers, so that the schema tells the others.
  @Test
  void numbersAndTextsComeBackByTheirSchema() {
    Path set = folder.resolve("set");
    Dataset<Row> rows =
        SPARK
            .range(0, 2, 1, 1)
            .select(
                col("id").equalTo(0).as("flag"),
                array(col("id").equalTo(1), lit(true)).as("flags"),
                col("id").minus(100).cast("byte").as("i8"),
                col("id").minus(10_000).cast("short").as("i16"),
                col("id").minus(100_000).cast("int").as("i32"),
                array(col("id").minus(100).cast("byte"), lit((byte) 7)).as("i8s"),
                array(col("id").cast("short"), lit((short) -7)).as("i16s"),
                array(col("id").cast("int"), lit(-7)).as("i32s"),
                format_string("ä%d", col("id")).as("text"),
                array(lit("ö"), format_string("%d", col("id"))).as("texts"));
    rows.write().format(FORMAT).save(set.toString());
    Dataset<Row> back = SPARK.read().format(FORMAT).schema(rows.schema()).load(set.toString());
    assertThat(text(back.orderBy("i8"))).isEqualTo(text(rows));
    assertThatThrownBy(() -> select(set, "i8 boolean").collectAsList())
        .hasStackTraceContaining(
            "feature 'i8' is -100, which does not fit a column of type boolean");
  }

  @Test
  void filesOfOthersAreReadByAGivenSchema() {
    Path file = folder.resolve("train-00000-of-00001");
    try (TfRecordWriter writer = TfRecordWriter.create(file, Compression.NONE)) {
      writer.write(
          new ExampleBuilder()
              .int64s("label", 7)
              .floats("pixels", 1, 2)
              .bytes("name", "Zoë".getBytes(StandardCharsets.UTF_8))
              .toBytes());
      writer.write(new ExampleBuilder().int64s("label", 300).toBytes());
      writer.commit();
    }
    Dataset<Row> rows =
        SPARK
            .read()
            .format(FORMAT)
            .schema("name string, label short, pixels array<float>")
            .load(folder.toString());
    assertThat(rows.collectAsList().toString())
        .isEqualTo("[[Zoë,7,ArraySeq(1.0, 2.0)], [null,300,null]]");
    assertThatThrownBy(() ->
            SPARK
                .read()
                .format(FORMAT)
                .schema("label byte")
                .load(folder.toString())
                .collectAsList())
        .hasStackTraceContaining(
            "record 1: feature 'label' is 300, which does not fit a column of type tinyint");
    assertThatThrownBy(() -> select(file, "label boolean").collectAsList())
        .hasStackTraceContaining(
            "record 0: feature 'label' is 7, which does not fit a column of type boolean");
    assertThatThrownBy(() ->
            SPARK
                .read()
                .format(FORMAT)
                .schema("label string")
                .load(file.toString())
                .collectAsList())
        .hasStackTraceContaining("record 0: feature 'label' is of kind INT64, not BYTES");
    assertThatThrownBy(() ->
            SPARK
                .read()
                .format(FORMAT)
                .schema("pixels float")
                .load(file.toString())
                .collectAsList())
        .hasStackTraceContaining(
            "feature 'pixels' has 2 values; its column must be an array to hold them");
  }

  /// A feature that only a late record has counts as a feature of the file.
  @Test
  void aColumnThatNoRecordHasIsRefused() {
    Path file = folder.resolve("train-00000-of-00001");
    try (TfRecordWriter writer = TfRecordWriter.create(file, Compression.NONE)) {
      for (long i = 0; i < 300; i++) {
        ExampleBuilder example = new ExampleBuilder().int64s("id", i);
        writer.write((i == 200 ? example.floats("late", 1) : example).toBytes());
      }
      writer.commit();
    }
    assertThatThrownBy(() -> select(file, "id long, idd long").collectAsList())
        .isInstanceOf(MisuseException.class)
        .hasMessage(file + " has no feature 'idd' in any record; they have [id, late]");
    assertThat(select(file, "id long, late float").where("late = 1").count()).isEqualTo(1);
    var _ = TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), GantrySession.shared());
    assertThat(select(file, "late float").where("late is null").count()).isEqualTo(299);
    assertThatThrownBy(() -> select(file, "idd long").collectAsList())
        .hasMessage(file + " has no feature 'idd' in any record; they have [id, late]");
  }

  private static Dataset<Row> select(Path file, String schema) {
    return SPARK.read().format(FORMAT).schema(schema).load(file.toString());
  }

  static Stream<Arguments> misfits() {
    return Stream.of(
        Arguments.of(lit(1.0), "column 'c' of type double does not fit tfrecord"),
        Arguments.of(array(array(lit(1))), "column 'c' of type array<array<int>> does not fit"),
        Arguments.of(
            array(lit(null).cast(DataTypes.LongType)), "column 'c' has a null in an array"));
  }

  @ParameterizedTest
  @MethodSource("misfits")
  void whatDoesNotFitIsSaidInOneLine(Column column, String message) {
    Path set = folder.resolve("set");
    assertThatThrownBy(() ->
            SPARK
                .range(0, 10, 1, 1)
                .select(column.as("c"))
                .write()
                .format(FORMAT)
                .save(set.toString()))
        .hasStackTraceContaining("MisuseException: " + message);
    assertThat(set).doesNotExist();
  }

  @Test
  void overwritingReplacesOurFilesOnlyAndAFailureNone() throws IOException {
    Path set = folder.resolve("set");
    samples(30).write().format(FORMAT).save(set.toString());
    Path mine = Files.writeString(set.resolve("_notes"), "mine");
    assertThatThrownBy(() -> samples(30).write().format(FORMAT).save(set.toString()))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("is not empty");

    read(set).where("id < 10").write().format(FORMAT).mode("overwrite").save(set.toString());
    assertThat(text(read(set).orderBy("id"))).isEqualTo(text(samples(10)));
    List<Path> before = files(set, "");
    Dataset<Row> broken =
        samples(10)
            .withColumn(
                "id",
                when(col("id").equalTo(9), raise_error(lit("row 9")).cast("long"))
                    .otherwise(col("id")));
    assertThatThrownBy(() -> broken.write().format(FORMAT).mode("overwrite").save(set.toString()))
        .hasStackTraceContaining("row 9");
    assertThat(files(set, "")).isEqualTo(before);
    assertThat(mine).hasContent("mine");
  }

  @Test
  void aFileThatIsWrittenAnewIsNotReadByAnOlderPlan() {
    Path file = folder.resolve("train-00000-of-00001");
    write(file, 1);
    Dataset<Row> kept = SPARK.read().format(FORMAT).schema("x long").load(file.toString());
    assertThat(kept.collectAsList().toString()).isEqualTo("[[1]]");
    write(file, 2);
    assertThatThrownBy(kept::collectAsList)
        .hasStackTraceContaining("changed-meanwhile")
        .hasStackTraceContaining("it was written anew since the query was planned");
  }

  private static void write(Path file, long x) {
    try (TfRecordWriter writer = TfRecordWriter.create(file, Compression.NONE)) {
      writer.write(new ExampleBuilder().int64s("x", x).toBytes());
      writer.commit();
    }
  }

  @Test
  void noRowsAreASetWithoutFiles() {
    Path set = folder.resolve("set");
    samples(0).write().format(FORMAT).save(set.toString());
    assertThat(files(set, "")).hasSize(1);
    assertThat(read(set).count()).isZero();
    Dataset<Row> rows =
        SPARK.read().format(FORMAT).schema("id long, floats array<float>").load(set.toString());
    assertThat(rows.select("floats").collectAsList()).isEmpty();
  }

  /// A driver that ends during its commit leaves such a folder.
  @Test
  void halfASetIsRefusedAndTheNextWriterReplacesIt() throws IOException {
    Path set = folder.resolve("set");
    samples(30).write().format(FORMAT).save(set.toString());
    Path unfinished = Files.createDirectory(set.resolve(".gantry-unfinished"));
    Files.move(set.resolve("_gantry-files"), unfinished.resolve("_gantry-files"));
    Path last = files(set, "part-00002").getFirst();
    Files.move(last, unfinished.resolve("part-last.tfrecord"));
    assertThatThrownBy(() -> read(set).count())
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(set.toString(), "no-list");

    samples(10).write().format(FORMAT).save(set.toString());
    assertThat(text(read(set).orderBy("id"))).isEqualTo(text(samples(10)));
    assertThat(files(set, "")).hasSize(7);
  }

  @Test
  void aFileOfASetThatIsNotWholeIsNotReadByItself() throws IOException {
    Path set = folder.resolve("set");
    samples(30).write().format(FORMAT).save(set.toString());
    Path first = files(set, "part-00000").getFirst();
    assertThat(read(first).count()).isEqualTo(10);
    Files.delete(files(set, "part-00002").getFirst());
    assertThatThrownBy(() -> read(first).count())
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll(set.toString(), "wrong-file");
  }

  private static List<Path> files(Path folder, String part) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries
          .filter(entry -> entry.getFileName().toString().contains(part))
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
