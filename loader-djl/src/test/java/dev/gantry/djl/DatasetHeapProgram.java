// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.training.dataset.Batch;
import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordWriter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/// Writes samples of 1 MiB as raw shards and as TFRecord, reads them in every way, and prints the
/// sums of their labels and pixels. For a JVM of its own.
final class DatasetHeapProgram {
  private static final int IMAGE_BYTES = 1 << 20;
  private static final int BATCH_SIZE = 8;

  private DatasetHeapProgram() {}

  /// @param arguments a folder and the number of samples
  public static void main(String[] arguments) {
    Path folder = Path.of(arguments[0]);
    int count = Integer.parseInt(arguments[1]);
    Path shards = folder.resolve("shards");
    Path records = folder.resolve("images.tfrecord");
    write(shards, records, count);
    say("shards", ShardDataset.builder().setPath(shards).setSampling(BATCH_SIZE).build());
    say("index", dataset(records, IndexUse.BUILD));
    say("stream", dataset(records, IndexUse.NONE));
  }

  private static void write(Path shards, Path records, int count) {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(IMAGE_BYTES)),
            new Field("label", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(count / 4);
    byte[] image = new byte[IMAGE_BYTES];
    try (GantrySession session = GantrySession.open();
        ShardWriter shard = ShardWriter.create(session, shards, fields, options);
        TfRecordWriter record = TfRecordWriter.create(session, records, Compression.NONE)) {
      for (int i = 0; i < count; i++) {
        Arrays.fill(image, (byte) i);
        shard.append(
            Map.of(
                "image", MemorySegment.ofArray(image),
                "label", MemorySegment.ofArray(new long[] {i})));
        record.write(new ExampleBuilder().bytes("image", image).int64s("label", i).toBytes());
      }
      var _ = shard.finish();
      record.commit();
    }
  }

  private static TfRecordDataset dataset(Path records, IndexUse use) {
    return TfRecordDataset.builder()
        .setPath(List.of(records))
        .addFeature(FeatureSpec.bytes("image", IMAGE_BYTES))
        .addFeature(FeatureSpec.int64s("label"))
        .optIndex(use)
        .setSampling(BATCH_SIZE)
        .build();
  }

  private static void say(String name, GantryDataset dataset) {
    long labels = 0;
    long pixels = 0;
    try (dataset;
        NDManager manager = NDManager.newBaseManager()) {
      for (Batch batch : dataset.getData(manager)) {
        try (batch) {
          labels += sum(batch.getLabels().singletonOrThrow());
          pixels += sum(batch.getData().singletonOrThrow());
        }
      }
    }
    System.out.println(name + ": labels " + labels + ", pixels " + pixels);
  }

  private static long sum(NDArray array) {
    try (NDArray sum = array.sum()) {
      return sum.getLong();
    }
  }
}
