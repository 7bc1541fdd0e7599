// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.images;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.images.Crop;
import dev.gantry.formats.internal.images.ImageDecoder;
import dev.gantry.formats.internal.images.Kernel;
import dev.gantry.formats.spi.FieldDecoder;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// Says how encoded pictures, JPEG or PNG, become U8 values of the shape (height, width, 3), red first.
///
/// A picture is resized so that its shorter side just fits, and its centre is cropped, unless you
/// choose otherwise. Resizing is bilinear and antialiased, with the results of Pillow and of
/// torchvision's transforms of Pillow's pictures. Grey pictures become RGB, alpha is dropped,
/// CMYK is converted, 16 bits become 8, and pictures are turned upright as their Exif data say.
///
/// Immutable and thread-safe: each method that sets something returns a new decoding.
public final class ImageDecoding implements FieldDecoder {
  /// The longest side of a decoded field.
  public static final int MAX_SIDE = 4096;

  /// The most pixels of a picture unless [#maxPixels] sets another bound. Above this number
  /// Pillow warns of decompression bombs.
  public static final long DEFAULT_MAX_PIXELS = 89_478_485;

  private static final long MOST_PIXELS = Integer.MAX_VALUE / 4;

  private final ImageDecoder decoder;

  private ImageDecoding(ImageDecoder.Options options) {
    decoder = new ImageDecoder(options);
  }

  /// @param height the field's height in pixels, from 1 to [#MAX_SIDE]
  /// @param width the field's width in pixels, from 1 to [#MAX_SIDE]
  public static ImageDecoding of(int height, int width) {
    MisuseException.requireRange("height", height, 1, MAX_SIDE);
    MisuseException.requireRange("width", width, 1, MAX_SIDE);
    return new ImageDecoding(
        new ImageDecoder.Options(
            height,
            width,
            new Crop.Window(0, false),
            0,
            Kernel.BILINEAR,
            true,
            true,
            false,
            DEFAULT_MAX_PIXELS));
  }

  /// Resizes the shorter side to `pixels`, then crops the centre: torchvision's `Resize` and `CenterCrop`, as
  /// for evaluation.
  ///
  /// @param pixels no less than the field's longer side
  public ImageDecoding resizeShorterSide(int pixels) {
    return with(options().withCrop(new Crop.Window(shorterSide(pixels), false)));
  }

  /// Resizes the shorter side to `pixels`, then crops a random window.
  ///
  /// @param pixels no less than the field's longer side
  public ImageDecoding randomCrop(int pixels) {
    return with(options().withCrop(new Crop.Window(shorterSide(pixels), true)));
  }

  private int shorterSide(int pixels) {
    int longer = Math.max(options().height(), options().width());
    MisuseException.requireRange("the shorter side", pixels, longer, MAX_SIDE);
    return pixels;
  }

  /// Resizes the whole picture to the field's shape, whatever the picture's proportions.
  public ImageDecoding stretch() {
    return with(options().withCrop(new Crop.Stretched()));
  }

  /// Crops a random part that has 8 % to 100 % of the picture's area and proportions from 3:4 to
  /// 4:3, and resizes it, as torchvision's `RandomResizedCrop` does for training.
  public ImageDecoding randomResizedCrop() {
    return randomResizedCrop(0.08, 1, 3.0 / 4, 4.0 / 3);
  }

  /// Crops a random part and resizes it.
  ///
  /// @param minArea the smallest share of the picture's area, more than 0
  /// @param maxArea the largest share of the picture's area, up to 1
  /// @param minAspect the smallest ratio of width to height, more than 0
  /// @param maxAspect the largest ratio of width to height
  public ImageDecoding randomResizedCrop(
      double minArea, double maxArea, double minAspect, double maxAspect) {
    if (!(minArea > 0 && minArea <= maxArea && maxArea <= 1)
        || !(minAspect > 0 && minAspect <= maxAspect && maxAspect < Double.POSITIVE_INFINITY)) {
      throw new MisuseException(
          "randomResizedCrop: areas must be ordered, above 0 and up to 1, aspects ordered and above"
              + " 0"
              + " (were %s to %s, %s to %s)".formatted(minArea, maxArea, minAspect, maxAspect));
    }
    return with(options().withCrop(new Crop.RandomResized(minArea, maxArea, minAspect, maxAspect)));
  }

  /// Mirrors each picture from left to right with a probability of one half.
  public ImageDecoding flip() {
    return with(options().withFlip(0.5));
  }

  /// Resizes by bicubic instead of bilinear interpolation.
  public ImageDecoding bicubic() {
    return with(options().withKernel(Kernel.BICUBIC));
  }

  /// Decodes all pixels of large pictures. Without this option, if the machine has libturbojpeg,
  /// a JPEG that shrinks to half or less is decoded at 1/2, 1/4 or 1/8 of its size, which takes
  /// less time but gives slightly different pixels.
  public ImageDecoding allPixels() {
    return with(options().withReduced(false));
  }

  /// Decodes JPEGs on the GPU if batches go to a GPU and the machine has CUDA's libnvjpeg. The
  /// CPU still decodes PNG, grey and CMYK pictures, pictures that are not upright or have more
  /// than 16,777,216 pixels, all pictures that libnvjpeg refuses, and those that a decoder of your
  /// own has this one decode. The GPU's pixels differ slightly from the CPU's.
  ///
  /// Use this option only for pictures that you trust: libnvjpeg has crashed on damaged pictures.
  public ImageDecoding onDevice() {
    return with(options().withOnDevice(true));
  }

  /// Ignores the orientation in pictures' Exif data, as Pillow and torchvision do.
  public ImageDecoding ignoreOrientation() {
    return with(options().withOriented(false));
  }

  /// Sets the most pixels that a picture may have. A picture with more pixels is refused before
  /// memory is allocated for it.
  public ImageDecoding maxPixels(long pixels) {
    MisuseException.requireRange("maxPixels", pixels, 1, MOST_PIXELS);
    return with(options().withMaxPixels(pixels));
  }

  /// Returns the field that pictures become.
  public Field field(String name) {
    return new Field(name, DType.U8, TensorShape.of(options().height(), options().width(), 3));
  }

  /// Returns the name of the JPEG decoder on this machine: the file of libturbojpeg and its
  /// version, such as `libturbojpeg.so.0, version 2`, or `the JDK`.
  public static String jpegLibrary() {
    return ImageDecoder.jpegLibrary();
  }

  /// Decodes a picture; see [FieldDecoder#decode].
  ///
  /// @throws MisuseException if the target is too small or read-only
  @Override
  public void decode(MemorySegment encoded, MemorySegment target, long seed) throws IOException {
    MisuseException.requireGiven("encoded", encoded);
    MisuseException.requireGiven("target", target);
    long bytes = 3L * options().height() * options().width();
    if (target.byteSize() < bytes || target.isReadOnly()) {
      throw new MisuseException(
          "target must have %d bytes, 3 for each pixel, and be writable (has %d%s)"
              .formatted(bytes, target.byteSize(), target.isReadOnly() ? ", read-only" : ""));
    }
    decoder.decode(encoded, target, seed, DevicePictures.serves(this));
  }

  private ImageDecoder.Options options() {
    return decoder.options();
  }

  private static ImageDecoding with(ImageDecoder.Options options) {
    return new ImageDecoding(options);
  }
}
