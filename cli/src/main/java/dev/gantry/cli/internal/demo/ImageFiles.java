// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
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
import dev.gantry.samples.TrainFromShards;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// How [SampleImages] lie in a folder, some to train with and others to test with. They are the
/// same ones each time, in the same order, and in files of as many.
public enum ImageFiles {
  SHARDS("raw shards"),
  TFRECORD("TFRecord files");

  public static final int TRAINING_FILES = 4;
  public static final int TEST_FILES = 1;
  public static final int IMAGES_PER_FILE = 504;
  static final int IMAGES_PER_BATCH = 32;

  private static final long SEED = 20_261_123;
  private static final String TRAIN = "train";
  private static final String TEST = "test";
  private static final String IMAGE = "image";
  private static final String LABEL = "label";
  private static final float GREY = 1 / 255f;

  private final String words;

  ImageFiles(String words) {
    this.words = words;
  }

  /// Makes the folder, and the files in it.
  void write(Path folder) throws IOException {
    Files.createDirectory(folder);
    write(folder, TRAIN, TRAINING_FILES, new SampleImages(SEED));
    write(folder, TEST, TEST_FILES, new SampleImages(SEED + 1));
  }

  private void write(Path folder, String name, int files, SampleImages images) {
    switch (this) {
      case SHARDS -> writeShards(folder.resolve(name), files, images);
      case TFRECORD -> writeRecords(folder, name, files, images);
    }
  }

  private static void writeShards(Path folder, int files, SampleImages images) {
    List<Field> fields =
        List.of(
            new Field(IMAGE, DType.U8, TensorShape.of(SampleImages.shape())),
            new Field(LABEL, DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(IMAGES_PER_FILE);
    try (ShardWriter writer = ShardWriter.create(GantrySession.shared(), folder, fields, options)) {
      for (int i = 0; i < files * IMAGES_PER_FILE; i++) {
        int label = images.nextLabel();
        writer.append(
            Map.of(
                IMAGE, MemorySegment.ofArray(images.next(label)),
                LABEL, MemorySegment.ofArray(new long[] {label})));
      }
      var _ = writer.finish();
    }
  }

  private static void writeRecords(Path folder, String name, int files, SampleImages images) {
    try (TfRecordShards writer =
        TfRecordShards.create(GantrySession.shared(), folder, name, files, Compression.NONE)) {
      for (int i = 0; i < files * IMAGES_PER_FILE; i++) {
        int label = images.nextLabel();
        ExampleBuilder example =
            new ExampleBuilder().bytes(IMAGE, images.next(label)).int64s(LABEL, label);
        writer.write(i / IMAGES_PER_FILE, MemorySegment.ofArray(example.toBytes()));
      }
      writer.commit();
    }
  }

  /// Those to train with, in random order. TFRecord files get indexes for that, unless they
  /// have them.
  GantryDataset train(Path folder) {
    return switch (this) {
      case SHARDS -> TrainFromShards.images(folder.resolve(TRAIN));
      case TFRECORD ->
          records(TfRecordShards.files(folder, TRAIN, TRAINING_FILES))
              .optIndex(IndexUse.BUILD)
              .optShuffle(42)
              .build();
    };
  }

  /// Those to test with, in the order of the files, so that sums over them are the same each time.
  /// TFRecord files are read as streams.
  GantryDataset test(Path folder) {
    return switch (this) {
      case SHARDS ->
          ShardDataset.builder()
              .setPath(folder.resolve(TEST))
              .setSampling(IMAGES_PER_BATCH)
              .optNormalize(IMAGE, GREY, 0)
              .build();
      case TFRECORD ->
          records(TfRecordShards.files(folder, TEST, TEST_FILES)).optIndex(IndexUse.NONE).build();
    };
  }

  private static TfRecordDataset.Builder records(List<Path> files) {
    return TfRecordDataset.builder()
        .setFiles(files)
        .addFeature(FeatureSpec.bytes(IMAGE, SampleImages.shape()))
        .addFeature(FeatureSpec.int64s(LABEL))
        .setSampling(IMAGES_PER_BATCH)
        .optNormalize(IMAGE, GREY, 0);
  }

  @Override
  public String toString() {
    return words;
  }
}
