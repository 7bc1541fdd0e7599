// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.remote;

import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import ai.djl.translate.TranslateException;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.djl.Weights;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.samples.Usage;
import java.io.IOException;

/// Loads weights, and reads batches of raw shards, both from S3 or a server that speaks its protocol.
/// The AWS SDK finds credentials, region and endpoint:
///
/// ```
/// export AWS_REGION=eu-central-1 AWS_PROFILE=training
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' ReadFromS3.java s3://bucket/bert/ s3://bucket/shards/
/// ```
public final class ReadFromS3 {
  private ReadFromS3() {}

  public static void main(String[] arguments) throws IOException, TranslateException {
    Usage.check("ReadFromS3.java s3://bucket/bert/ s3://bucket/shards/", arguments);
    try (NDManager manager = NDManager.newBaseManager()) {
      System.out.println(weights(manager, arguments[0]).size() + " arrays");
      try (ShardDataset train = samples(arguments[1])) {
        for (Batch batch : train.getData(manager)) {
          try (batch) {
            System.out.println(batch.getData().getShapes()[0]);
          }
        }
      }
    }
  }

  /// A folder, a file or an index; the arrays own their memory.
  public static NDList weights(NDManager manager, String location) {
    try (Weights weights = Weights.open(location)) {
      return weights.load(manager);
    }
  }

  /// Batches in random order, read ahead.
  public static ShardDataset samples(String folder) {
    return ShardDataset.builder().setPath(folder).setSampling(32).optShuffle(42).build();
  }

  /// The same of a folder of TFRecord files. Indexes that are missing there are made and uploaded.
  public static TfRecordDataset records(String folder) {
    return TfRecordDataset.builder()
        .setPath(folder)
        .addFeature(FeatureSpec.floats("vector", 64))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(IndexUse.BUILD)
        .setSampling(32)
        .optShuffle(42)
        .build();
  }
}
