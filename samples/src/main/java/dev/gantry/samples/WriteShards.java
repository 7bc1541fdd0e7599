// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardSet;
import dev.gantry.formats.shards.ShardWriter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Writes images and labels as raw tensor shards: the fastest format to train from.
///
/// `FOLDER` is new:
///
/// ```
/// java --enable-native-access=ALL-UNNAMED -cp 'cli/target/lib/*' WriteShards.java FOLDER
/// ```
public final class WriteShards {
  public static final int SAMPLES = 2000;
  public static final int CLASSES = 10;
  private static final int SIDE = 16;

  private WriteShards() {}

  public static void main(String[] arguments) {
    Usage.check("WriteShards.java FOLDER", arguments);
    ShardSet written = write(Path.of(arguments[0]));
    System.out.printf(
        "%d samples in %d files: %s%n", written.samples(), written.shards().size(), written.file());
  }

  public static ShardSet write(Path folder) {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, TensorShape.of(1, SIDE, SIDE)),
            new Field("label", DType.I64, TensorShape.of()));
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(500);
    SplittableRandom random = new SplittableRandom(1);
    try (ShardWriter writer = ShardWriter.create(folder, fields, options)) {
      for (int i = 0; i < SAMPLES; i++) {
        int label = random.nextInt(CLASSES);
        writer.append(
            Map.of(
                "image", MemorySegment.ofArray(image(label, random)),
                "label", MemorySegment.ofArray(new long[] {label})));
      }
      // The files are on the disk when this returns, and
      // not there at all if an exception comes first.
      return writer.finish();
    }
  }

  /// Noise with one bright row, whose number is the label. Stands for your own images.
  public static byte[] image(int label, SplittableRandom random) {
    byte[] pixels = new byte[SIDE * SIDE];
    random.nextBytes(pixels);
    Arrays.fill(pixels, label * SIDE, (label + 1) * SIDE, (byte) 255);
    return pixels;
  }
}
