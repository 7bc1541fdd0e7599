// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.FeatureSpec;
import dev.gantry.formats.tfrecord.TfRecordShards;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.LongFunction;

/// TFRecord files of examples that are all as long: an image of so many bytes, and the sample's
/// number as its label.
record RecordFiles(List<Path> files, int imageBytes, long count, int batchSize) {
  private static final int FILES = 4;
  private static final int IMAGES_IN_A_BATCH = 256;
  private static final int SMALL_IN_A_BATCH = 4096;

  /// Those of [ImageSamples].
  static RecordFiles of(ImageSamples samples) {
    return new RecordFiles(
        samples.records(),
        ImageSamples.IMAGE_BYTES,
        ShardSet.open(samples.shards()).samples(),
        IMAGES_IN_A_BATCH);
  }

  /// Those of images of a few bytes, which are made where they are not there.
  ///
  /// @param bytes of all images, about
  static RecordFiles small(GantrySession session, Path folder, int imageBytes, long bytes)
      throws IOException {
    String name = "small-" + imageBytes;
    List<Path> files = TfRecordShards.files(folder, name, FILES);
    RecordFiles made = new RecordFiles(files, imageBytes, bytes / imageBytes, SMALL_IN_A_BATCH);
    if (!Files.exists(files.getFirst())) {
      made.write(session, folder, name);
    }
    return made;
  }

  private void write(GantrySession session, Path folder, String name) {
    long perFile = Math.ceilDiv(count, FILES);
    LongFunction<byte[]> images = images();
    try (TfRecordShards writer =
        TfRecordShards.create(session, folder, name, FILES, Compression.NONE)) {
      for (long i = 0; i < count; i++) {
        byte[] example =
            new ExampleBuilder().bytes("image", images.apply(i)).int64s("label", i).toBytes();
        writer.write((int) (i / perFile), MemorySegment.ofArray(example));
      }
      writer.commit();
    }
  }

  /// The image of each sample; the array is the next one's, too.
  private LongFunction<byte[]> images() {
    if (imageBytes == ImageSamples.IMAGE_BYTES) {
      return new ImageSamples.Pixels()::of;
    }
    byte[] noise = new byte[1 << 20];
    new SplittableRandom(imageBytes).nextBytes(noise);
    byte[] image = new byte[imageBytes];
    return number -> {
      int at = (int) (number * 4099 % (noise.length - imageBytes));
      System.arraycopy(noise, at, image, 0, imageBytes);
      return image;
    };
  }

  SampleDigest expected() {
    return SampleDigest.of(count, images());
  }

  List<FeatureSpec> features() {
    return List.of(FeatureSpec.bytes("image", imageBytes), FeatureSpec.int64s("label"));
  }

  /// The size of all files.
  long bytes() throws IOException {
    long bytes = 0;
    for (Path file : files) {
      bytes += Files.size(file);
    }
    return bytes;
  }

  /// How long a record is with its framing.
  String kind() throws IOException {
    return "records of " + Math.round((double) bytes() / count) + " bytes";
  }
}
