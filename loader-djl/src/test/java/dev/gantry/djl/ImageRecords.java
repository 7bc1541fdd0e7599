// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.ExampleBuilder;
import dev.gantry.formats.tfrecord.TfRecordShards;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/// The samples of [ImageShards] as TFRecord files, with the two floats `x` instead of the weights.
final class ImageRecords {
  private ImageRecords() {}

  static List<Path> write(Path folder, int samples, int files, Compression compression) {
    try (GantrySession session = GantrySession.open();
        TfRecordShards writer =
            TfRecordShards.create(session, folder, "images", files, compression)) {
      int perFile = (samples + files - 1) / files;
      for (int i = 0; i < samples; i++) {
        byte[] image = new byte[ImageShards.IMAGE_BYTES];
        for (int at = 0; at < image.length; at++) {
          image[at] = ImageShards.pixel(i, at);
        }
        byte[] example =
            new ExampleBuilder()
                .bytes("image", image)
                .int64s("label", i)
                .floats("x", i, -i)
                .toBytes();
        writer.write(i / perFile, MemorySegment.ofArray(example));
      }
      writer.commit();
    }
    return TfRecordShards.files(folder, "images", files);
  }
}
