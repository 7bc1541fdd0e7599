// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.spark;

import static org.apache.spark.sql.functions.col;
import static org.apache.spark.sql.functions.expr;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.types.Shape;
import dev.gantry.djl.LoadOptions;
import dev.gantry.djl.Weights;
import dev.gantry.samples.ServeModel;
import dev.gantry.samples.Usage;
import dev.gantry.spark.BatchInference;
import java.io.IOException;
import java.nio.file.Path;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;

/// Writes a DataFrame of images as raw shards and reads them. A model on Spark's executors answers
/// each image, and the answers are written as TFRecord files.
///
/// `MODEL` holds the weights of a classifier of 8 × 8 digits, such as
/// `samples/src/main/resources/model`; `FOLDER` is new, and on a file system that all executors
/// share:
///
/// ```
/// spark-submit --conf spark.driver.extraJavaOptions=--enable-native-access=ALL-UNNAMED … MODEL FOLDER
/// ```
public final class AnswerOnSpark {
  private AnswerOnSpark() {}

  public static void main(String[] arguments) throws IOException {
    Usage.check("AnswerOnSpark MODEL FOLDER", arguments);
    String master = System.getProperty("spark.master", "local[2]");
    try (SparkSession spark = SparkSession.builder().master(master).getOrCreate()) {
      String shards = Path.of(arguments[1]).resolve("images").toString();
      write(spark, shards);
      Dataset<Row> images = read(spark, shards);
      System.out.println(images.schema().catalogString());

      String answers = Path.of(arguments[1]).resolve("answers").toString();
      answer(arguments[0], images, answers);
      System.out.println(spark.read().format("tfrecord").load(answers).count() + " answers");
    }
  }

  private static void write(SparkSession spark, String folder) {
    Dataset<Row> images =
        spark
            .range(1000)
            .select(
                col("id"),
                expr("transform(sequence(0, 63), i -> cast((id + i) % 17 / 16 as float))")
                    .as("image"));
    // Each task writes shards; the set is there when the driver has written shards.json.
    images.write().format("gantry-shards").option("shape.image", "8,8").save(folder);
  }

  private static Dataset<Row> read(SparkSession spark, String folder) {
    return spark.read().format("gantry-shards").load(folder);
  }

  private static void answer(String weights, Dataset<Row> images, String folder) {
    try (BatchInference inference =
        BatchInference.builder()
            .setModel(device -> load(weights, device))
            .setInput("image", 64)
            .setOutput("logits")
            .optBatchSize(256)
            .build()) {
      inference.run(images).select("id", "logits").write().format("tfrecord").save(folder);
    }
  }

  /// Runs once on each executor, and once for each of its GPUs.
  private static Model load(String folder, Device device) {
    Model model = Model.newInstance("digits", device);
    model.setBlock(ServeModel.block());
    try (Weights weights = Weights.open(Path.of(folder))) {
      weights.load(
          model.getNDManager(),
          model.getBlock(),
          ServeModel.NAMES,
          LoadOptions.defaults(),
          new Shape(1, 64));
    }
    return model;
  }
}
