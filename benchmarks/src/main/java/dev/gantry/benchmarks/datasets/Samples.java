// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
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
import dev.gantry.formats.shards.Shard;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordShards;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.LongFunction;
import java.util.stream.Stream;

/// The same samples as raw shards and as TFRecord files. Each sample is an image of random bytes
/// and a label, which is the sample's number. Missing files are made when they are asked for.
///
/// @param name the prefix of the file names in `folder`
/// @param count the number of samples; a rest that would not fill a batch is left out, so that all
///     batches have the same size
/// @param batchSize the number of samples of a batch
public record Samples(
    GantrySession session, Path folder, String name, TensorShape shape, long count, int batchSize) {
  private static final TensorShape PHOTO = TensorShape.of(3, 224, 224);
  private static final int FILES = 4;

  /// The files from which batches are read, and how they are read.
  enum Kind {
    SHARDS("raw shards"),
    INDEXED("TFRecord by index"),
    STREAMED("TFRecord as stream");

    final String title;

    Kind(String title) {
      this.title = title;
    }
  }

  public Samples {
    count -= count % batchSize;
  }

  /// Makes a description of images of 224 x 224 pixels in three colours.
  ///
  /// @param bytes the approximate size of all images
  static Samples photos(GantrySession session, Path folder, long bytes) {
    long count = bytes / PHOTO.elements().orElseThrow();
    return new Samples(session, folder, "images", PHOTO, count, 256);
  }

  public int imageBytes() {
    return Math.toIntExact(shape.elements().orElseThrow());
  }

  /// Returns the size of all images and labels.
  long bytes() {
    return count * (imageBytes() + Long.BYTES);
  }

  public Path shards() throws IOException {
    Path made = folder.resolve(name + "-shards");
    if (!Files.exists(made)) {
      Files.createDirectories(folder);
      List<Field> fields =
          List.of(
              new Field("image", DType.U8, shape), new Field("label", DType.I64, TensorShape.of()));
      ShardOptions options =
          ShardOptions.defaults().withSamplesPerShard(Math.ceilDiv(count, FILES));
      LongFunction<byte[]> images = images();
      try (ShardWriter writer = ShardWriter.create(session, made, fields, options)) {
        for (long i = 0; i < count; i++) {
          writer.append(
              Map.of(
                  "image", MemorySegment.ofArray(images.apply(i)),
                  "label", MemorySegment.ofArray(new long[] {i})));
        }
        var _ = writer.finish();
      }
    }
    return made;
  }

  public List<Path> records() throws IOException {
    List<Path> made = TfRecordShards.files(folder, name, FILES);
    if (!Files.exists(made.getFirst())) {
      Files.createDirectories(folder);
      LongFunction<byte[]> images = images();
      try (TfRecordShards writer =
          TfRecordShards.create(session, folder, name, FILES, Compression.NONE)) {
        for (long i = 0; i < count; i++) {
          byte[] example =
              new ExampleBuilder().bytes("image", images.apply(i)).int64s("label", i).toBytes();
          writer.write((int) (i / Math.ceilDiv(count, FILES)), MemorySegment.ofArray(example));
        }
        writer.commit();
      }
    }
    return made;
  }

  /// Returns the TFRecord files, and makes the index of each file that has none.
  public List<Path> indexed() throws IOException {
    for (Path file : records()) {
      if (!Files.exists(TfRecordIndex.indexFile(file))) {
        long start = System.nanoTime();
        var summary = TfRecordIndex.build(file, TfRecordIndex.Options.defaults(), session);
        double seconds = (System.nanoTime() - start) / 1e9;
        System.out.printf(
            "gantry index\thot\t%.2f GB/s\t%s%n", Files.size(file) / 1e9 / seconds, summary);
      }
    }
    return records();
  }

  /// Returns a function that fills the image of a sample. Each call overwrites and returns the
  /// same array.
  public LongFunction<byte[]> images() {
    byte[] image = new byte[imageBytes()];
    byte[] noise = new byte[image.length < 1 << 16 ? 1 << 20 : 64 << 20];
    new SplittableRandom(image.length).nextBytes(noise);
    return number -> {
      int at = (int) (number * 4099 % (noise.length - image.length));
      System.arraycopy(noise, at, image, 0, image.length);
      return image;
    };
  }

  Batches batches(Kind kind, Shuffle shuffle) throws IOException {
    return batches(kind, shuffle, shape);
  }

  private Batches batches(Kind kind, Shuffle shuffle, TensorShape as) throws IOException {
    OrderOptions order = new OrderOptions(batchSize, LastBatch.DROP, shuffle, 1, 1, 0, 1);
    return switch (kind) {
      case SHARDS ->
          EpochBatches.of(ShardSet.open(shards()).catalogue(List.of("image", "label")), order);
      case INDEXED -> {
        List<TfRecordField> fields =
            List.of(
                TfRecordField.of("image", DType.U8, as),
                TfRecordField.of("label", DType.I64, TensorShape.of()));
        yield EpochBatches.of(TfRecordCatalogue.open(locations(indexed()), fields, session), order);
      }
      case STREAMED ->
          StreamedBatches.open(
              session, locations(records()), features(), order, TfRecordOptions.defaults());
    };
  }

  private static List<Location> locations(List<Path> files) {
    return files.stream().map(Location::of).toList();
  }

  public List<FeatureSpec> features() {
    return List.of(FeatureSpec.bytes("image", imageBytes()), FeatureSpec.int64s("label"));
  }

  /// Opens batches of photos whose colours are normalised with a scale of their own. The TFRecord
  /// files are read as images whose channels come last, and the normalisation puts the channels
  /// first.
  Batches normalized(Kind kind, Shuffle shuffle, DType to) throws IOException {
    TensorShape as = kind == Kind.SHARDS ? PHOTO : TensorShape.of(224, 224, 3);
    FieldNormalization how =
        new FieldNormalization(
            List.of(0.0171f, 0.0175f, 0.0174f),
            List.of(-2.118f, -2.036f, -1.804f),
            to,
            !as.equals(PHOTO));
    return NormalizedBatches.of(
        batches(kind, shuffle, as),
        List.of(new Field("image", DType.U8, as)),
        Map.of("image", how),
        batchSize);
  }

  /// Returns the files from which a kind's batches are read.
  List<Path> files(Kind kind) throws IOException {
    return kind == Kind.SHARDS
        ? ShardSet.open(shards()).shards().stream().map(Shard::file).toList()
        : indexed();
  }

  List<Path> files() throws IOException {
    return Stream.concat(files(Kind.SHARDS).stream(), files(Kind.INDEXED).stream()).toList();
  }

  /// @throws IOException if the page cache keeps some of the files
  void drop() throws IOException {
    if (files().stream().mapToLong(PageCache::drop).anyMatch(left -> left != 0)) {
      throw new IOException("files stay in the page cache");
    }
  }
}
