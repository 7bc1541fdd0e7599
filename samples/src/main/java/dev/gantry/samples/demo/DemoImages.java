// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples.demo;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.DatasetBuilder;
import dev.gantry.djl.GantryDataset;
import dev.gantry.djl.IndexUse;
import dev.gantry.djl.ShardDataset;
import dev.gantry.djl.TfRecordDataset;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordShards;
import dev.gantry.samples.demo.DemoTraining.Samples;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Grey images of waves in noise, some to train with and others to test with, the same ones each time. The
/// class is the waves' direction and length; where they begin is chance, so that no pixel alone tells the
/// class.
final class DemoImages {
  static final int TRAINING_FILES = 4;
  static final int TEST_FILES = 1;
  static final int IMAGES_PER_FILE = 504;

  private static final int SIDE = 16;
  private static final long SEED = 20_261_123;

  private DemoImages() {}

  /// Makes the folder, and the files in it.
  static void write(Samples samples, Path folder) throws IOException {
    Files.createDirectory(folder);
    write(samples, folder, "train", TRAINING_FILES, new SplittableRandom(SEED));
    write(samples, folder, "test", TEST_FILES, new SplittableRandom(SEED + 1));
  }

  private static void write(
      Samples samples, Path folder, String part, int files, SplittableRandom random) {
    int count = files * IMAGES_PER_FILE;
    if (samples == Samples.TFRECORD) {
      try (TfRecordShards writer = TfRecordShards.create(folder, part, files, Compression.NONE)) {
        for (int i = 0; i < count; i++) {
          int label = random.nextInt(DemoTraining.CLASSES);
          ExampleBuilder example =
              new ExampleBuilder().bytes("image", image(label, random)).int64s("label", label);
          writer.write(i / IMAGES_PER_FILE, MemorySegment.ofArray(example.toBytes()));
        }
        writer.commit();
      }
      return;
    }
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(1, SIDE, SIDE)),
            new Field("label", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(IMAGES_PER_FILE);
    try (ShardWriter writer = ShardWriter.create(folder.resolve(part), fields, options)) {
      for (int i = 0; i < count; i++) {
        int label = random.nextInt(DemoTraining.CLASSES);
        writer.append(
            Map.of(
                "image", MemorySegment.ofArray(image(label, random)),
                "label", MemorySegment.ofArray(new long[] {label})));
      }
      var _ = writer.finish();
    }
  }

  /// One byte a pixel.
  private static byte[] image(int label, SplittableRandom random) {
    double angle = Math.PI * (label % 5) / 5;
    double perPixel = 2 * Math.PI / (label < 5 ? 4 : 8);
    double begin = random.nextDouble(2 * Math.PI);
    byte[] pixels = new byte[SIDE * SIDE];
    for (int i = 0; i < pixels.length; i++) {
      int row = i / SIDE;
      double along = i % SIDE * Math.cos(angle) + row * Math.sin(angle);
      double grey = 128 + 60 * Math.sin(begin + perPixel * along) + 60 * random.nextGaussian();
      pixels[i] = (byte) Math.clamp(Math.round(grey), 0, 255);
    }
    return pixels;
  }

  /// The images to train with, in random order. TFRecord files get indexes for that, unless they have
  /// them.
  static GantryDataset train(Samples samples, Path folder) {
    return samples == Samples.TFRECORD
        ? batches(records(folder, "train", TRAINING_FILES))
            .optIndex(IndexUse.BUILD)
            .optShuffle(42)
            .build()
        : batches(ShardDataset.builder().setPath(folder.resolve("train"))).optShuffle(42).build();
  }

  /// The images to test with, in the order of the files, so that sums over them are the same each time.
  /// TFRecord files are read as streams.
  static GantryDataset test(Samples samples, Path folder) {
    return samples == Samples.TFRECORD
        ? batches(records(folder, "test", TEST_FILES)).optIndex(IndexUse.NONE).build()
        : batches(ShardDataset.builder().setPath(folder.resolve("test"))).build();
  }

  private static TfRecordDataset.Builder records(Path folder, String part, int files) {
    return TfRecordDataset.builder()
        .setPath(TfRecordShards.files(folder, part, files))
        .addFeature(FeatureSpec.bytes("image", 1, SIDE, SIDE))
        .addFeature(FeatureSpec.int64s("label"));
  }

  private static <T extends DatasetBuilder<T>> T batches(T builder) {
    return builder.setSampling(32).optNormalize("image", 1 / 255f, 0);
  }
}
