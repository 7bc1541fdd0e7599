// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import dev.gantry.formats.internal.images.Sampling.Region;
import java.util.SplittableRandom;

/// Chooses the part of a picture that becomes a field.
public sealed interface Crop {
  /// The whole picture, resized to the field.
  record Stretched() implements Crop {}

  /// The picture is resized without changing its proportions, and a window of the result is
  /// cropped.
  ///
  /// @param shorterSide the length of the shorter side after resizing, in pixels; 0 for the
  ///     smallest size that covers the field
  /// @param random whether the window has a random position; if false, it is centred
  record Window(int shorterSide, boolean random) implements Crop {}

  /// A random part of the picture, resized to the field.
  record RandomResized(double minArea, double maxArea, double minAspect, double maxAspect)
      implements Crop {
    private static final int TRIES = 10;

    private Region region(int width, int height, Random random) {
      double area = (double) width * height;
      for (int i = 0; i < TRIES; i++) {
        double wanted = area * random.between(minArea, maxArea);
        double aspect =
            StrictMath.exp(random.between(StrictMath.log(minAspect), StrictMath.log(maxAspect)));
        long w = Math.round(Math.sqrt(wanted * aspect));
        long h = Math.round(Math.sqrt(wanted / aspect));
        if (w > 0 && w <= width && h > 0 && h <= height) {
          int x = random.upTo(width - (int) w);
          int y = random.upTo(height - (int) h);
          return new Region(x, y, (int) w, (int) h);
        }
      }
      return centre(width, height);
    }

    /// Returns the largest centred part whose proportions are allowed.
    private Region centre(int width, int height) {
      double aspect = (double) width / height;
      int w = aspect > maxAspect ? (int) Math.max(1, Math.round(height * maxAspect)) : width;
      int h = aspect < minAspect ? (int) Math.max(1, Math.round(width / minAspect)) : height;
      return new Region((width - w) / 2, (height - h) / 2, w, h);
    }
  }

  /// Chooses the sampling for a picture of `width` by `height` pixels.
  ///
  /// @param flip the share of pictures that are mirrored
  default Sampling sampling(
      int width, int height, int outWidth, int outHeight, double flip, long seed) {
    Random random = new Random(new SplittableRandom(seed));
    boolean mirrored = flip > 0 && random.between(0, 1) < flip;
    Region all = new Region(0, 0, width, height);
    return switch (this) {
      case Stretched _ -> new Sampling(all, outWidth, outHeight, 0, 0, mirrored);
      case RandomResized resized ->
          new Sampling(resized.region(width, height, random), outWidth, outHeight, 0, 0, mirrored);
      case Window(int shorterSide, boolean anywhere) -> {
        int side = shorterSide;
        // To cover the field, the picture is scaled by the side that would otherwise be too
        // short.
        boolean byWidth =
            side > 0 ? width <= height : (long) width * outHeight <= (long) height * outWidth;
        int newWidth = side > 0 ? side : outWidth;
        int newHeight = side > 0 ? side : outHeight;
        if (byWidth) {
          newHeight = Math.max(newHeight, (int) ((long) newWidth * height / width));
        } else {
          newWidth = Math.max(newWidth, (int) ((long) newHeight * width / height));
        }
        int left = anywhere ? random.upTo(newWidth - outWidth) : half(newWidth - outWidth);
        int top = anywhere ? random.upTo(newHeight - outHeight) : half(newHeight - outHeight);
        yield new Sampling(all, newWidth, newHeight, left, top, mirrored);
      }
    };
  }

  /// Returns half of a margin, rounded half to even, as Python does.
  private static int half(int margin) {
    return (int) Math.rint(margin / 2.0);
  }

  /// Computes random numbers from a documented sequence of bits, so that they are the same on
  /// each JVM.
  record Random(SplittableRandom bits) {
    double between(double low, double high) {
      return low + (high - low) * ((bits.nextLong() >>> 11) * 0x1p-53);
    }

    /// Returns a number from 0 to `most`, inclusive.
    int upTo(int most) {
      return (int) Math.unsignedMultiplyHigh(bits.nextLong(), most + 1L);
    }
  }
}
