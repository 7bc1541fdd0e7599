// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.formats.spi.FieldDecoder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.IntBuffer;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Decodes, crops and resizes pictures. It keeps a buffer of the output's size for each thread
/// that decodes at once; a picture's pixels are freed after the picture.
public final class ImageDecoder implements FieldDecoder {
  private static final int MAX_REDUCTION = 8;

  private final Options options;
  private final Optional<TurboJpeg> turbo;
  private final ConcurrentLinkedQueue<Resampler> idle = new ConcurrentLinkedQueue<>();

  /// The options of decoding: the output's size, and how pictures are cropped, flipped and
  /// resized.
  ///
  /// @param height the output's height in pixels
  /// @param width the output's width in pixels
  /// @param flip the share of pictures that are mirrored
  /// @param reduced whether a picture may be decoded at a fraction of its size
  /// @param oriented whether pictures are turned upright
  /// @param onDevice whether pictures may be decoded on the device to which their batch goes
  /// @param maxPixels the most pixels of a picture
  public record Options(
      int height,
      int width,
      Crop crop,
      double flip,
      Kernel kernel,
      boolean reduced,
      boolean oriented,
      boolean onDevice,
      long maxPixels) {
    public Options withCrop(Crop chosen) {
      return new Options(
          height, width, chosen, flip, kernel, reduced, oriented, onDevice, maxPixels);
    }

    public Options withFlip(double chosen) {
      return new Options(
          height, width, crop, chosen, kernel, reduced, oriented, onDevice, maxPixels);
    }

    public Options withKernel(Kernel chosen) {
      return new Options(height, width, crop, flip, chosen, reduced, oriented, onDevice, maxPixels);
    }

    public Options withReduced(boolean chosen) {
      return new Options(height, width, crop, flip, kernel, chosen, oriented, onDevice, maxPixels);
    }

    public Options withOriented(boolean chosen) {
      return new Options(height, width, crop, flip, kernel, reduced, chosen, onDevice, maxPixels);
    }

    public Options withOnDevice(boolean chosen) {
      return new Options(height, width, crop, flip, kernel, reduced, oriented, chosen, maxPixels);
    }

    public Options withMaxPixels(long chosen) {
      return new Options(height, width, crop, flip, kernel, reduced, oriented, onDevice, chosen);
    }
  }

  public ImageDecoder(Options options) {
    this(options, TurboJpeg.loaded());
  }

  /// @param turbo the library that decodes JPEG; if empty, the JDK decodes it
  ImageDecoder(Options options, Optional<TurboJpeg> turbo) {
    this.options = options;
    this.turbo = turbo;
  }

  public Options options() {
    return options;
  }

  public static String jpegLibrary() {
    return TurboJpeg.loaded().map(TurboJpeg::description).orElse("the JDK");
  }

  @Override
  public void decode(MemorySegment encoded, MemorySegment target, long seed) throws IOException {
    decode(encoded, target, seed, true);
  }

  /// Does the same as [#decode(MemorySegment, MemorySegment, long)].
  ///
  /// @param mayLeave whether the picture may be left to the device to which the target's batch goes
  public void decode(MemorySegment encoded, MemorySegment target, long seed, boolean mayLeave)
      throws IOException {
    ImageHeader header = ImageHeader.of(encoded, options.maxPixels());
    int orientation = options.oriented() ? header.orientation() : Exif.UPRIGHT;
    boolean turned = orientation > 4;
    Sampling sampling =
        options
            .crop()
            .sampling(
                turned ? header.height() : header.width(),
                turned ? header.width() : header.height(),
                options.width(),
                options.height(),
                options.flip(),
                seed);
    if (mayLeave
        && orientation == Exif.UPRIGHT
        && decodedOnDevice(encoded, header, sampling, target)) {
      return;
    }
    Optional<TurboJpeg> library = header.kind() == ImageHeader.Kind.JPEG ? turbo : Optional.empty();
    int reduction = library.isPresent() && options.reduced() ? reduction(sampling) : 1;
    Resampler kept = idle.poll();
    Resampler resampler =
        kept == null ? new Resampler(options.width(), options.height(), options.kernel()) : kept;
    try (Arena arena = Arena.ofConfined()) {
      Pixels pixels =
          library.isPresent()
              ? library.get().decode(encoded, header, reduction, arena)
              : JdkImages.decode(header);
      resampler.run(pixels.upright(orientation), sampling, reduction, target);
    }
    idle.add(resampler);
  }

  /// Gives a picture to the decoder of the device to which the target's batch goes, if the batch
  /// goes to a device that can decode the picture. Returns whether it did.
  private boolean decodedOnDevice(
      MemorySegment encoded, ImageHeader header, Sampling sampling, MemorySegment target) {
    if (!options.onDevice() || !header.common() || !DevicePictures.CURRENT.isBound()) {
      return false;
    }
    Sampling.Span across = sampling.across(1, header.width());
    Sampling.Span down = sampling.down(1, header.height());
    FilterTaps columns = FilterTaps.of(options.kernel(), across, options.width());
    FilterTaps rows = FilterTaps.of(options.kernel(), down, options.height());
    IntBuffer table = IntBuffer.allocate(columns.tableInts() + rows.tableInts());
    columns.putPlaces(across.first(), table);
    rows.putPlaces(down.first(), table);
    columns.putWeights(table);
    rows.putWeights(table);
    return DevicePictures.CURRENT
        .get()
        .decode(
            encoded,
            new DevicePictures.Resampling(
                header.width(),
                header.height(),
                options.width(),
                options.height(),
                columns.most,
                rows.most,
                sampling.mirrored(),
                table.flip()),
            target);
  }

  /// Returns the largest reduction after which the region still has at least as many pixels as
  /// its resized form.
  private static int reduction(Sampling sampling) {
    int reduction = 1;
    while (reduction < MAX_REDUCTION
        && sampling.region().width() >= 2L * reduction * sampling.width()
        && sampling.region().height() >= 2L * reduction * sampling.height()) {
      reduction *= 2;
    }
    return reduction;
  }
}
