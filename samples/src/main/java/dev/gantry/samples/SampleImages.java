package dev.gantry.samples;

import dev.gantry.core.DType;
import dev.gantry.core.Gantry;
import dev.gantry.core.Shape;
import dev.gantry.formats.dataset.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;

/// Grey images of waves in noise. The class is the waves' direction and length; where they begin is
/// chance, so that no pixel alone tells the class.
final class SampleImages {
  static final int CLASSES = 10;

  private static final int SIDE = 16;
  private static final int DIRECTIONS = 5;
  private static final double SHORT_WAVE = 4;
  private static final double LONG_WAVE = 8;
  private static final int MIDDLE_GREY = 128;
  private static final double WAVE_GREYS = 60;
  private static final double NOISE_GREYS = 60;

  private final SplittableRandom random;

  private SampleImages(long seed) {
    random = new SplittableRandom(seed);
  }

  /// Writes raw shards of U8 images `[1, 16, 16]` and their I64 labels. The same seed makes the
  /// same ones.
  ///
  /// @param folder that is not there yet
  /// @param samples a multiple of `samplesPerShard`, or the last shard has fewer
  static void write(Path folder, long seed, int samples, int samplesPerShard) {
    List<Field> fields =
        List.of(
            new Field("image", DType.U8, Shape.of(1, SIDE, SIDE)),
            new Field("label", DType.I64, Shape.of()));
    SampleImages images = new SampleImages(seed);
    ShardOptions options = ShardOptions.defaults().withSamplesPerShard(samplesPerShard);
    try (ShardWriter writer = ShardWriter.create(Gantry.shared(), folder, fields, options)) {
      for (int i = 0; i < samples; i++) {
        int label = images.random.nextInt(CLASSES);
        writer.append(
            Map.of(
                "image", MemorySegment.ofArray(images.next(label)),
                "label", MemorySegment.ofArray(new long[] {label})));
      }
      var _ = writer.finish();
    }
  }

  private byte[] next(int label) {
    double angle = Math.PI * (label % DIRECTIONS) / DIRECTIONS;
    double perPixel = 2 * Math.PI / (label < DIRECTIONS ? SHORT_WAVE : LONG_WAVE);
    double begin = random.nextDouble(2 * Math.PI);
    byte[] pixels = new byte[SIDE * SIDE];
    for (int i = 0; i < pixels.length; i++) {
      int column = i % SIDE;
      int row = i / SIDE;
      double along = column * Math.cos(angle) + row * Math.sin(angle);
      double grey =
          MIDDLE_GREY
              + WAVE_GREYS * Math.sin(begin + perPixel * along)
              + NOISE_GREYS * random.nextGaussian();
      pixels[i] = (byte) Math.clamp(Math.round(grey), 0, 255);
    }
    return pixels;
  }
}
