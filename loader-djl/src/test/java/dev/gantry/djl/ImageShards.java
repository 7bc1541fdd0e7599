// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/// Small shards whose samples contain their numbers: sample `i` has an `image` of [#IMAGE] bytes,
/// whose byte at position `p` is `i + p`, a `label`, which is `i`, and `weights` of BF16.
final class ImageShards {
  static final TensorShape IMAGE = TensorShape.of(3, 5);
  static final int IMAGE_BYTES = 15;

  private static final List<Field> FIELDS =
      List.of(
          new Field("image", DType.U8, IMAGE),
          new Field("label", DType.I64, TensorShape.of()),
          new Field("weights", DType.BF16, TensorShape.of(2)));

  private ImageShards() {}

  static Path write(Path folder, int samples, int perShard) {
    try (GantrySession session = GantrySession.open();
        ShardWriter writer =
            ShardWriter.create(
                session, folder, FIELDS, ShardOptions.defaults().withSamplesPerShard(perShard))) {
      for (int i = 0; i < samples; i++) {
        byte[] image = new byte[IMAGE_BYTES];
        for (int at = 0; at < image.length; at++) {
          image[at] = pixel(i, at);
        }
        writer.append(
            Map.of(
                "image", MemorySegment.ofArray(image),
                "label", MemorySegment.ofArray(new long[] {i}),
                "weights", MemorySegment.ofArray(new short[] {0x3f80, 0x4000})));
      }
      var _ = writer.finish();
    }
    return folder;
  }

  static byte pixel(long sample, int at) {
    return (byte) (sample + at);
  }
}
