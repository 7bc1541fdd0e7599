// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal;

import static org.apache.spark.sql.functions.array;
import static org.apache.spark.sql.functions.callUDF;
import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.lit;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDList;
import ai.djl.nn.LambdaBlock;
import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.spark.BatchInference;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.apache.spark.TaskContext;
import org.apache.spark.launcher.JavaModuleOptions;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.api.java.UDF2;
import org.apache.spark.sql.types.DataTypes;

/// The driver of a cluster of two executors on this machine: `FOLDER writes RUNS`, `FOLDER
/// million` or `FOLDER inference`. The exit code is 0 if all checks have passed.
public final class ClusterDriver {
  /// The options with which Spark's own scripts start a JVM, and a few more.
  static final List<String> JAVA_OPTIONS =
      Stream.concat(
              Arrays.stream(JavaModuleOptions.defaultModuleOptions().strip().split("\\s+")),
              Stream.of("--enable-native-access=ALL-UNNAMED", "-XX:+UseSerialGC"))
          .toList();

  private static final int PARTITIONS = 12;
  private static final int ROWS = 12_000;

  private ClusterDriver() {}

  public static void main(String[] arguments) throws Exception {
    Path folder = Path.of(arguments[0]);
    SparkSession spark = cluster();
    try {
      switch (arguments[1]) {
        case "writes" -> writes(spark, folder, Integer.parseInt(arguments[2]));
        case "million" -> million(spark, folder);
        default -> inference(spark, folder);
      }
    } finally {
      spark.stop();
    }
  }

  private static SparkSession cluster() {
    return SparkSession.builder()
        .master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.executor.memory", "512m")
        .config("spark.executor.extraClassPath", System.getProperty("java.class.path"))
        .config("spark.executor.extraJavaOptions", String.join(" ", JAVA_OPTIONS))
        .config("spark.task.maxFailures", "20")
        // Spark must not give up when executors are killed.
        .config("spark.deploy.maxExecutorRetries", "-1")
        .config("spark.speculation", "true")
        .config("spark.speculation.interval", "50ms")
        .config("spark.speculation.quantile", "0.1")
        .config("spark.speculation.multiplier", "1.2")
        .config("spark.speculation.minTaskRuntime", "50ms")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate();
  }

  /// Writes sets while tasks fail, pause and are killed, and checks the resulting files.
  private static void writes(SparkSession spark, Path folder, int runs) throws IOException {
    spark
        .udf()
        .register(
            "trouble", (UDF2<Long, Integer, Long>) ClusterDriver::trouble, DataTypes.LongType);
    Random random = new Random(1);
    for (int run = 0; run < runs; run++) {
      String format = run % 2 == 0 ? "gantry-shards" : "tfrecord";
      Path set = folder.resolve("set-" + format);
      Dataset<Row> rows =
          spark
              .range(0, ROWS, 1, PARTITIONS)
              .select(
                  callUDF("trouble", col("id"), lit(run)).as("id"),
                  array(col("id").cast("float"), lit(1f)).as("floats"));
      long start = System.nanoTime();
      AtomicBoolean done = new AtomicBoolean();
      Thread killer = killer(done, random.nextLong());
      try {
        rows.write().format(format).mode("overwrite").save(set.toString());
      } finally {
        done.set(true);
        join(killer);
      }
      check(spark, format, set, run);
      System.out.println(
          "run " + run + " " + format + " " + (System.nanoTime() - start) / 1_000_000 + " ms");
    }
  }

  /// Makes trouble in the middle of some partitions: the first attempt of a task fails, pauses,
  /// or kills its executor.
  private static long trouble(long id, int run) {
    TaskContext task = TaskContext.get();
    boolean isMiddle = id % (ROWS / PARTITIONS) == ROWS / PARTITIONS / 2;
    if (isMiddle && task.attemptNumber() == 0) {
      switch (new Random(31L * run + task.partitionId()).nextInt(16)) {
        case 0, 1 -> throw new IllegalStateException("row " + id + " fails on purpose");
        case 2, 3, 5 -> LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(700));
        case 4 -> Runtime.getRuntime().halt(1);
        default -> {}
      }
    }
    return id;
  }

  /// Kills an executor at a random time of the job, which may be while the executor commits a
  /// task.
  private static Thread killer(AtomicBoolean done, long seed) {
    Random random = new Random(seed);
    return Thread.ofPlatform()
        .start(() -> {
          LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(2500)));
          List<ProcessHandle> executors = ProcessHandle.current().children().toList();
          if (!done.get() && !executors.isEmpty()) {
            boolean _ = executors.get(random.nextInt(executors.size())).destroyForcibly();
          }
        });
  }

  private static void join(Thread thread) {
    try {
      thread.join();
    } catch (InterruptedException e) {
      throw new IllegalStateException(e);
    }
  }

  private static void check(SparkSession spark, String format, Path set, int run)
      throws IOException {
    long[] ids =
        spark.read().format(format).load(set.toString()).select("id").collectAsList().stream()
            .mapToLong(row -> row.getLong(0))
            .sorted()
            .toArray();
    require(
        Arrays.equals(ids, LongStream.range(0, ROWS).toArray()),
        "run " + run + ": " + ids.length + " rows");
    List<String> names = new ArrayList<>();
    try (Stream<Path> files = Files.list(set)) {
      files.map(file -> file.getFileName().toString()).sorted().forEach(names::add);
    }
    int wanted;
    if (format.equals("tfrecord")) {
      wanted =
          FileList.files(Folder.at(GantrySession.shared(), Location.of(set)).orElseThrow()).size()
              + 1;
    } else {
      ShardSet shards = ShardSet.open(set);
      shards.verify();
      wanted = shards.shards().size() + 1;
    }
    require(names.size() == wanted, "run " + run + ": " + names);
  }

  private static void require(boolean condition, String message) {
    if (!condition) {
      throw new IllegalStateException(message);
    }
  }

  private static void million(SparkSession spark, Path folder) {
    Dataset<Row> rows =
        spark
            .range(0, 1_000_000, 1, 8)
            .select(
                col("id"),
                col("id").mod(1000).cast("int").as("label"),
                array(col("id").cast("float"), lit(1f), lit(2f), lit(3f)).as("floats"));
    for (String format : List.of("gantry-shards", "tfrecord")) {
      String set = folder.resolve(format).toString();
      long start = System.nanoTime();
      rows.write().format(format).save(set);
      long written = System.nanoTime();
      Dataset<Row> back = spark.read().format(format).load(set).select("id", "label", "floats");
      Dataset<Row> wanted =
          format.equals("tfrecord") ? rows.withColumn("label", col("label").cast("long")) : rows;
      require(back.count() == 1_000_000, format + " count");
      require(back.exceptAll(wanted).isEmpty() && wanted.exceptAll(back).isEmpty(), format);
      System.out.println(
          format
              + ": written in "
              + (written - start) / 1_000_000
              + " ms, read and compared in "
              + (System.nanoTime() - written) / 1_000_000
              + " ms");
    }
  }

  private static void inference(SparkSession spark, Path folder) throws IOException {
    Path loads = Files.createDirectory(folder.resolve("loads"));
    String marks = loads.toString();
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> model(marks, device))
            .setInput("floats")
            .setOutput("sum", DataTypes.FloatType)
            .build()) {
      Dataset<Row> rows =
          spark
              .range(0, 20_000, 1, 16)
              .select(col("id"), array(col("id").cast("float"), lit(1f)).as("floats"));
      List<Row> answers = new ArrayList<>(inference.run(rows).collectAsList());
      answers.sort(Comparator.comparingLong(row -> row.getLong(0)));
      for (int i = 0; i < 20_000; i++) {
        require(answers.get(i).getFloat(2) == i + 1f, "answer " + i + ": " + answers.get(i));
      }
    }
    try (Stream<Path> files = Files.list(loads)) {
      long count = files.count();
      System.out.println(count + " loads by two executors");
      require(count <= 2, count + " loads");
    }
  }

  private static Model model(String marks, Device device) throws IOException {
    Path _ = Files.createTempFile(Path.of(marks), "load", "");
    Model model = Model.newInstance("sum", device);
    model.setBlock(new LambdaBlock(list -> new NDList(list.singletonOrThrow().sum(new int[] {1}))));
    return model;
  }
}
