// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.demo;

import java.util.SplittableRandom;

/// Grey images of waves in noise. The class is the waves' direction and length; where they begin is
/// chance, so that no pixel alone tells the class.
public final class SampleImages {
  public static final int CLASSES = 10;

  private static final int SIDE = 16;
  private static final int DIRECTIONS = 5;
  private static final double SHORT_WAVE = 4;
  private static final double LONG_WAVE = 8;
  private static final int MIDDLE_GREY = 128;
  private static final double WAVE_GREYS = 60;
  private static final double NOISE_GREYS = 60;

  private final SplittableRandom random;

  /// The same seed makes the same ones.
  SampleImages(long seed) {
    random = new SplittableRandom(seed);
  }

  /// Of one channel.
  static long[] shape() {
    return new long[] {1, SIDE, SIDE};
  }

  int nextLabel() {
    return random.nextInt(CLASSES);
  }

  /// A byte a pixel.
  byte[] next(int label) {
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
