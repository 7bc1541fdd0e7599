// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A decoded picture, which returns its rows as RGB of 8 bits.
///
/// @param width in pixels
/// @param height in pixels
record Pixels(int width, int height, Rows rows) {
  /// The number of colour components of a returned pixel.
  static final int CHANNELS = 3;

  @FunctionalInterface
  interface Rows {
    /// Writes consecutive pixels of a row from the start of `rgb`.
    void read(int y, int x, int count, byte[] rgb);
  }

  /// Makes a picture whose memory has RGB pixels of 8 bits.
  static Pixels ofRgb(MemorySegment memory, int width, int height) {
    return new Pixels(
        width,
        height,
        (y, x, count, rgb) ->
            MemorySegment.copy(
                memory,
                ValueLayout.JAVA_BYTE,
                ((long) y * width + x) * CHANNELS,
                rgb,
                0,
                count * CHANNELS));
  }

  /// Makes a picture whose memory has pixels of four bytes: cyan, magenta, yellow and black. Each
  /// is stored inverted, as all JPEG writers store it.
  static Pixels ofCmyk(MemorySegment memory, int width, int height) {
    byte[] row = new byte[4 * width];
    return new Pixels(
        width,
        height,
        (y, x, count, rgb) -> {
          long at = ((long) y * width + x) * 4;
          MemorySegment.copy(memory, ValueLayout.JAVA_BYTE, at, row, 0, 4 * count);
          for (int i = 0; i < count; i++) {
            int light = row[4 * i + 3] & 0xFF;
            for (int c = 0; c < CHANNELS; c++) {
              rgb[CHANNELS * i + c] = (byte) darkened(row[4 * i + c] & 0xFF, light);
            }
          }
        });
  }

  /// Returns the part of `light` that passes an ink with the transparency `shade` of 255, rounded
  /// as Pillow rounds it.
  private static int darkened(int shade, int light) {
    int product = (255 - shade) * light + 128;
    return light - ((product + (product >> 8)) >> 8);
  }

  /// Turns and mirrors the picture, so that it is upright.
  ///
  /// @param orientation the orientation, 1 to 8, as Exif numbers it
  Pixels upright(int orientation) {
    if (orientation == Exif.UPRIGHT) {
      return this;
    }
    boolean turned = orientation > 4;
    boolean fromRight =
        orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    boolean fromBottom =
        orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    int newWidth = turned ? height : width;
    byte[] row = new byte[width * CHANNELS];
    byte[] all = new byte[Math.multiplyExact(Math.multiplyExact(width, height), CHANNELS)];
    for (int y = 0; y < height; y++) {
      rows.read(y, 0, width, row);
      int b = fromBottom ? height - 1 - y : y;
      for (int x = 0; x < width; x++) {
        int a = fromRight ? width - 1 - x : x;
        int to = (turned ? a * newWidth + b : b * newWidth + a) * CHANNELS;
        System.arraycopy(row, x * CHANNELS, all, to, CHANNELS);
      }
    }
    return ofRgb(MemorySegment.ofArray(all), newWidth, turned ? width : height);
  }
}
