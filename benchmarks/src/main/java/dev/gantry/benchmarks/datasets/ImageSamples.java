// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.PageCache;
import dev.gantry.formats.Field;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.batches.Batches;
import dev.gantry.formats.internal.batches.EpochBatches;
import dev.gantry.formats.internal.batches.FieldNormalization;
import dev.gantry.formats.internal.batches.NormalizedBatches;
import dev.gantry.formats.internal.index.TfRecordCatalogue;
import dev.gantry.formats.internal.index.TfRecordField;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.streams.StreamedBatches;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordShards;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.stream.Stream;

/// The same samples as raw shards and as TFRecord: random bytes, as many as an image of 224 x 224
/// pixels in three colours, and the sample's number as its label.
///
/// @param shards the folder of the raw shards
/// @param records the TFRecord files, each with an index
record ImageSamples(GantrySession session, Path shards, List<Path> records) {
  static final TensorShape IMAGE = TensorShape.of(3, 224, 224);
  static final int IMAGE_BYTES = 3 * 224 * 224;
  private static final int FILES = 4;

  /// Those in `folder`, which are made where they are not there.
  ///
  /// @param bytes of all images, about
  static ImageSamples in(Path folder, long bytes, GantrySession session) throws IOException {
    long count = bytes / IMAGE_BYTES;
    Files.createDirectories(folder);
    Path shards = folder.resolve("shards");
    if (!Files.exists(shards.resolve(ShardSet.FILE_NAME))) {
      writeShards(shards, count, session);
    }
    List<Path> records = TfRecordShards.files(folder, "images", FILES);
    if (!Files.exists(records.getFirst())) {
      writeRecords(folder, count, session);
    }
    for (Path file : records) {
      if (!Files.exists(TfRecordIndex.indexFile(file))) {
        long start = System.nanoTime();
        var summary = TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf(
            "gantry index\thot\t%.2f GB/s\t%s%n", Files.size(file) / 1e9 / seconds, summary);
      }
    }
    return new ImageSamples(session, shards, records);
  }

  /// Raw shards of `count` samples.
  static void writeShards(Path folder, long count, GantrySession session) {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, IMAGE), new Field("label", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard((count + FILES - 1) / FILES);
    Pixels pixels = new Pixels();
    try (ShardWriter writer = ShardWriter.create(session, folder, fields, options)) {
      for (long i = 0; i < count; i++) {
        writer.append(
            Map.of(
                "image", MemorySegment.ofArray(pixels.of(i)),
                "label", MemorySegment.ofArray(new long[] {i})));
      }
      var _ = writer.finish();
    }
  }

  /// Raw shards of `count` samples of 4 KiB, where they are not there.
  static void writePages(Path folder, long count, GantrySession session) {
    if (Files.exists(folder)) {
      return;
    }
    List<Field> fields = List.of(new Field("page", DType.U8, TensorShape.of(4096)));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(count);
    byte[] page = new byte[4096];
    SplittableRandom random = new SplittableRandom(count);
    try (ShardWriter writer = ShardWriter.create(session, folder, fields, options)) {
      for (long i = 0; i < count; i++) {
        random.nextBytes(page);
        writer.append(Map.of("page", MemorySegment.ofArray(page)));
      }
      var _ = writer.finish();
    }
  }

  private static void writeRecords(Path folder, long count, GantrySession session) {
    Pixels pixels = new Pixels();
    long perFile = (count + FILES - 1) / FILES;
    try (TfRecordShards writer =
        TfRecordShards.create(session, folder, "images", FILES, Compression.NONE)) {
      for (long i = 0; i < count; i++) {
        byte[] example =
            new ExampleBuilder().bytes("image", pixels.of(i)).int64s("label", i).toBytes();
        writer.write((int) (i / perFile), MemorySegment.ofArray(example));
      }
      writer.commit();
    }
  }

  /// The raw shards as batches.
  Batches batches(OrderOptions order, PlanLimits limits) {
    return EpochBatches.of(
        ShardSet.open(shards).catalogue(List.of("image", "label")), order, limits);
  }

  /// The TFRecord files by their indexes.
  Batches indexed(OrderOptions order, PlanLimits limits) {
    return indexed(order, limits, IMAGE);
  }

  private Batches indexed(OrderOptions order, PlanLimits limits, TensorShape shape) {
    List<TfRecordField> fields =
        List.of(
            TfRecordField.of("image", DType.U8, shape),
            TfRecordField.of("label", DType.I64, TensorShape.of()));
    return EpochBatches.of(
        TfRecordCatalogue.open(records.stream().map(Location::of).toList(), fields, session),
        order,
        limits);
  }

  /// The raw shards normalised, each colour by its own scale.
  Batches normalized(OrderOptions order, PlanLimits limits, DType to) {
    return normalized(batches(order, limits), IMAGE, order, to);
  }

  /// The TFRecord files by their indexes, taken for images whose channels come last: they become the first.
  Batches normalizedChannelsFirst(OrderOptions order, PlanLimits limits, DType to) {
    TensorShape shape = TensorShape.of(224, 224, 3);
    return normalized(indexed(order, limits, shape), shape, order, to);
  }

  private static Batches normalized(
      Batches batches, TensorShape shape, OrderOptions order, DType to) {
    FieldNormalization how =
        new FieldNormalization(
            List.of(0.0171f, 0.0175f, 0.0174f),
            List.of(-2.118f, -2.036f, -1.804f),
            to,
            !shape.equals(IMAGE));
    return NormalizedBatches.of(
        batches,
        List.of(new Field("image", DType.U8, shape)),
        Map.of("image", how),
        order.batchSize());
  }

  /// The TFRecord files as streams.
  Batches streamed(OrderOptions order) {
    List<FeatureSpec> features =
        List.of(FeatureSpec.bytes("image", 3, 224, 224), FeatureSpec.int64s("label"));
    return StreamedBatches.open(
        session,
        records.stream().map(Location::of).toList(),
        features,
        order,
        TfRecordOptions.defaults());
  }

  /// Full batches only, so that all are alike.
  static OrderOptions order(int batchSize, Shuffle shuffle) {
    return new OrderOptions(batchSize, LastBatch.DROP, shuffle, 1, 1, 0, 1);
  }

  void warm() {
    files().forEach(PageCache::warm);
  }

  /// @return whether the page cache has nothing of the files now
  boolean drop() {
    return files().stream().mapToLong(PageCache::drop).allMatch(left -> left == 0);
  }

  private List<Path> files() {
    List<Path> all = new ArrayList<>(records);
    try (Stream<Path> files = Files.list(shards)) {
      files.forEach(all::add);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return all;
  }

  /// Random bytes that are different for each image.
  static final class Pixels {
    private static final int STEP = 4099;
    private final byte[] noise = new byte[64 << 20];
    private final byte[] image = new byte[IMAGE_BYTES];

    Pixels() {
      new SplittableRandom(1).nextBytes(noise);
    }

    byte[] of(long number) {
      int at = (int) (number * STEP % (noise.length - IMAGE_BYTES));
      System.arraycopy(noise, at, image, 0, IMAGE_BYTES);
      return image;
    }
  }
}
