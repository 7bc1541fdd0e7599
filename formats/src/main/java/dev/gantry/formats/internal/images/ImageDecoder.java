// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import dev.gantry.formats.spi.FieldDecoder;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Optional;
import java.util.concurrent.ConcurrentLinkedQueue;

/// Decodes, crops and resizes pictures. Buffers of the output's size are kept for the next picture, one
/// for each thread that decodes at once; pixels are freed after each.
public final class ImageDecoder implements FieldDecoder {
  private static final int MAX_REDUCTION = 8;

  private final Options options;
  private final Optional<TurboJpeg> turbo;
  private final ConcurrentLinkedQueue<Resampler> idle = new ConcurrentLinkedQueue<>();

  /// What pictures become.
  ///
  /// @param height of the output
  /// @param width of the output
  /// @param flip the share of pictures that are mirrored
  /// @param reduced whether a picture may be decoded at a part of its size
  /// @param oriented whether pictures are turned upright
  /// @param maxPixels the most pixels of a picture
  public record Options(
      int height,
      int width,
      Crop crop,
      double flip,
      Kernel kernel,
      boolean reduced,
      boolean oriented,
      long maxPixels) {
    public Options withCrop(Crop chosen) {
      return new Options(height, width, chosen, flip, kernel, reduced, oriented, maxPixels);
    }

    public Options withFlip(double chosen) {
      return new Options(height, width, crop, chosen, kernel, reduced, oriented, maxPixels);
    }

    public Options withKernel(Kernel chosen) {
      return new Options(height, width, crop, flip, chosen, reduced, oriented, maxPixels);
    }

    public Options withReduced(boolean chosen) {
      return new Options(height, width, crop, flip, kernel, chosen, oriented, maxPixels);
    }

    public Options withOriented(boolean chosen) {
      return new Options(height, width, crop, flip, kernel, reduced, chosen, maxPixels);
    }

    public Options withMaxPixels(long chosen) {
      return new Options(height, width, crop, flip, kernel, reduced, oriented, chosen);
    }
  }

  public ImageDecoder(Options options) {
    this(options, TurboJpeg.loaded());
  }

  /// @param turbo decodes JPEG; if empty, the JDK does
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

  /// The largest reduction that leaves at least as many pixels as the region is resized to.
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
