// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import static org.apache.spark.sql.functions.col;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.GantryException;
import dev.gantry.core.MisuseException;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import scala.reflect.ClassTag;

/// Tests what both data sources have in common, in local mode.
@ExtendWith(NoLeaks.class)
class FormatSourceTest {
  private static final SparkSession SPARK = LocalSpark.session();

  @TempDir Path folder;

  @AfterEach
  void awaitTasks() throws InterruptedException, TimeoutException {
    LocalSpark.awaitTasks();
  }

  private static Dataset<Row> rows() {
    return SPARK.range(0, 6, 1, 2).select(col("id"), col("id").mod(2).as("even"));
  }

  @ParameterizedTest
  @CsvSource({
    "gantry-shards, samplePerShard, 'shape.COLUMN, shardBytes, samplesPerShard, partitionBytes'",
    "gantry-shards, compression, 'shape.COLUMN, shardBytes, samplesPerShard, partitionBytes'",
    "gantry-shards, shapes.id, 'shape.COLUMN, shardBytes, samplesPerShard, partitionBytes'",
    "tfrecord, codec, 'compression, index, inferRecords, partitionBytes'",
    "tfrecord, shape.id, 'compression, index, inferRecords, partitionBytes'"
  })
  void anOptionThatTheFormatDoesNotHaveIsRefused(String format, String option, String there) {
    Path set = folder.resolve("set");
    String message =
        "'" + option + "' is not an option of " + format + "; its options are " + there;
    assertThatThrownBy(() -> rows().write().format(format).option(option, "1").save(set.toString()))
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
    assertThat(set).doesNotExist();
    rows().write().format(format).save(set.toString());
    assertThatThrownBy(
            () -> SPARK.read().format(format).option(option, "1").load(set.toString()).count())
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
    assertThatThrownBy(() ->
            SPARK
                .read()
                .format(format)
                .schema("id long")
                .option(option, "1")
                .load(set.toString())
                .count())
        .isInstanceOf(MisuseException.class)
        .hasMessage(message);
  }

  @ParameterizedTest
  @ValueSource(strings = {"gantry-shards", "tfrecord"})
  void aSetIsNoTable(String format) {
    assertThatThrownBy(() -> rows().write().format(format).saveAsTable("rows"))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "saveAsTable is not supported by "
                + format
                + ", whose sets are folders: use save(path)");
  }

  @Test
  void aFlagIsTrueOrFalse() {
    Path set = folder.resolve("set");
    assertThatThrownBy(
            () -> rows().write().format("tfrecord").option("index", "fasle").save(set.toString()))
        .hasStackTraceContaining("option index must be one of [TRUE, FALSE] (was 'fasle')");
    assertThat(set).doesNotExist();
  }

  @ParameterizedTest
  @ValueSource(strings = {"gantry-shards", "tfrecord"})
  void aSetNeedsItsPath(String format) {
    assertThatThrownBy(() -> SPARK.read().format(format).load())
        .isInstanceOf(MisuseException.class)
        .hasMessage("name one path: load(path), save(path) or option path");
    assertThatThrownBy(() -> rows().write().format(format).option("path", "").save())
        .isInstanceOf(MisuseException.class)
        .hasMessage("name one path: load(path), save(path) or option path");
  }

  /// The case of an option's name does not matter. The names of Hadoop's options have a dot.
  @ParameterizedTest
  @ValueSource(strings = {"gantry-shards", "tfrecord"})
  void optionsOfSparkAndHadoopPass(String format) {
    Path set = folder.resolve("set");
    rows()
        .write()
        .format(format)
        .options(Map.of("PartitionBYTES", "10", "fs.s3a.endpoint", "x", "path", set.toString()))
        .save();
    assertThat(
            SPARK
                .read()
                .format(format)
                .option("partitionbytes", 1)
                .option("mapreduce.task.timeout", "1")
                .load(set.toString())
                .count())
        .isEqualTo(6);
  }

  @ParameterizedTest
  @ValueSource(strings = {"gantry-shards", "tfrecord"})
  void partitionsByColumnsAreRefused(String format) {
    Path set = folder.resolve("set");
    for (String mode : new String[] {"errorifexists", "overwrite", "ignore"}) {
      assertThatThrownBy(() ->
              rows().write().format(format).mode(mode).partitionBy("even").save(set.toString()))
          .isInstanceOf(MisuseException.class)
          .hasMessageStartingWith("partitionBy and clusterBy are not supported by " + format)
          .hasMessageContaining("even");
      assertThatThrownBy(
              () -> rows().write().format(format).mode(mode).clusterBy("even").save(set.toString()))
          .isInstanceOf(MisuseException.class);
    }
    assertThat(set).doesNotExist();
  }

  @ParameterizedTest
  @CsvSource({
    "gantry-shards, tfrecord, samples already: shards.json",
    "tfrecord, gantry-shards, TFRecord files already: _gantry-files"
  })
  void aSetOfTheOtherFormatIsNotWrittenOver(String there, String format, String holds) {
    Path set = folder.resolve("set");
    rows().write().format(there).save(set.toString());
    assertThatThrownBy(() -> rows().write().format(format).mode("overwrite").save(set.toString()))
        .isInstanceOf(MisuseException.class)
        .hasMessage(set + " holds " + holds + "; name another place");
    assertThat(SPARK.read().format(there).load(set.toString()).count()).isEqualTo(6);
    assertThatThrownBy(() -> SPARK.read().format(format).load(set.toString()).count())
        .isInstanceOf(GantryException.class);
  }

  @ParameterizedTest
  @ValueSource(strings = {"gantry-shards", "tfrecord"})
  void aDataFrameWithoutPartitionsIsASetWithoutRows(String format) {
    Path set = folder.resolve("set");
    StructType schema = new StructType().add("id", DataTypes.LongType);
    Dataset<Row> none =
        SPARK.createDataFrame(SPARK.sparkContext().emptyRDD(ClassTag.apply(Row.class)), schema);
    assertThat(none.rdd().getNumPartitions()).isZero();
    none.write().format(format).save(set.toString());
    assertThat(SPARK.read().format(format).schema(schema).load(set.toString()).collectAsList())
        .isEmpty();
    assertThat(SPARK.read().format(format).load(set.toString()).count()).isZero();
    none.write().format(format).mode("overwrite").save(set.toString());
    rows().select("id").write().format(format).mode("overwrite").save(set.toString());
    assertThat(SPARK.read().format(format).load(set.toString()).count()).isEqualTo(6);
  }
}
