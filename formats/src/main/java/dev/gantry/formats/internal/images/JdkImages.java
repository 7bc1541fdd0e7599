// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import java.awt.image.BufferedImage;
import java.awt.image.DataBufferByte;
import java.awt.image.IndexColorModel;
import java.awt.image.PixelInterleavedSampleModel;
import java.awt.image.Raster;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Iterator;
import java.util.Locale;
import javax.imageio.IIOException;
import javax.imageio.ImageIO;
import javax.imageio.ImageReader;
import javax.imageio.stream.ImageInputStream;
import javax.imageio.stream.MemoryCacheImageInputStream;

/// Decodes pictures with the JDK's own readers. It ignores colour profiles and takes the values
/// as the file has them, as other programs that prepare pictures for networks do.
final class JdkImages {
  private static final String OWN_MODULE = "java.desktop";

  private JdkImages() {}

  static Pixels decode(ImageHeader header) throws IOException {
    ImageReader reader = reader(header.kind());
    try (ImageInputStream stream =
        new MemoryCacheImageInputStream(new ByteArrayInputStream(header.essenceBytes()))) {
      reader.setInput(stream, true, true);
      if (reader.getWidth(0) != header.width() || reader.getHeight(0) != header.height()) {
        throw new IOException("the picture has two headers of different sizes");
      }
      if (header.kind() == ImageHeader.Kind.JPEG && header.components() == 4) {
        return cmyk(reader.readRaster(0, null), header.ycck());
      }
      return pixels(reader.read(0));
    } catch (IIOException | RuntimeException e) {
      // The JDK's readers do not check all that a file says, and throw various unchecked
      // exceptions.
      throw new IOException("the JDK cannot decode the picture: " + e.getMessage(), e);
    } finally {
      reader.dispose();
    }
  }

  /// Returns the JDK's own reader. Other libraries' plug-ins are not used, since they read the
  /// parts of a file that this class removes.
  private static ImageReader reader(ImageHeader.Kind kind) throws IOException {
    Iterator<ImageReader> readers =
        ImageIO.getImageReadersByFormatName(kind.name().toLowerCase(Locale.ROOT));
    while (readers.hasNext()) {
      ImageReader reader = readers.next();
      if (OWN_MODULE.equals(reader.getClass().getModule().getName())) {
        return reader;
      }
      reader.dispose();
    }
    throw new IOException("this JDK has no reader of " + kind);
  }

  /// @param ycck whether the inverted inks were transformed as RGB is to YCbCr
  private static Pixels cmyk(Raster raster, boolean ycck) {
    int width = raster.getWidth();
    int height = raster.getHeight();
    byte[] all = new byte[Math.multiplyExact(Math.multiplyExact(width, height), 4)];
    int[] row = new int[4 * width];
    for (int y = 0; y < height; y++) {
      raster.getPixels(0, y, width, 1, row);
      for (int i = 0; i < row.length; i += 4) {
        if (ycck) {
          double blue = row[i + 1] - 128;
          double red = row[i + 2] - 128;
          int light = row[i];
          row[i] = 255 - clamp(light + 1.402 * red);
          row[i + 1] = 255 - clamp(light - 0.344136286 * blue - 0.714136286 * red);
          row[i + 2] = 255 - clamp(light + 1.772 * blue);
        }
        for (int c = 0; c < 4; c++) {
          all[y * row.length + i + c] = (byte) row[i + c];
        }
      }
    }
    return Pixels.ofCmyk(MemorySegment.ofArray(all), width, height);
  }

  private static int clamp(double value) {
    return Math.clamp(Math.round(value), 0, 255);
  }

  private static Pixels pixels(BufferedImage image) {
    Raster raster = image.getRaster();
    int width = raster.getWidth();
    int height = raster.getHeight();
    boolean indexed = image.getColorModel() instanceof IndexColorModel;
    if (!indexed
        && raster.getSampleModel() instanceof PixelInterleavedSampleModel model
        && raster.getDataBuffer() instanceof DataBufferByte buffer) {
      return new Pixels(width, height, interleaved(buffer.getData(), model));
    }
    int bands = raster.getNumBands();
    int shift = Math.max(0, raster.getSampleModel().getSampleSize(0) - Byte.SIZE);
    int[] row = new int[bands * width];
    return new Pixels(
        width,
        height,
        (y, x, count, rgb) -> {
          raster.getPixels(x, y, count, 1, row);
          for (int i = 0; i < count; i++) {
            for (int c = 0; c < Pixels.CHANNELS; c++) {
              int value =
                  indexed
                      ? image.getColorModel().getRGB(row[i]) >> (16 - 8 * c)
                      : row[i * bands + (bands < Pixels.CHANNELS ? 0 : c)] >> shift;
              rgb[Pixels.CHANNELS * i + c] = (byte) value;
            }
          }
        });
  }

  /// Reads interleaved samples. A grey value, with or without alpha, becomes the value of all
  /// three channels.
  private static Pixels.Rows interleaved(byte[] data, PixelInterleavedSampleModel model) {
    int[] offsets = model.getBandOffsets();
    int red = offsets[0];
    int green = offsets.length < Pixels.CHANNELS ? red : offsets[1];
    int blue = offsets.length < Pixels.CHANNELS ? red : offsets[2];
    int step = model.getPixelStride();
    return (y, x, count, rgb) -> {
      int at = y * model.getScanlineStride() + x * step;
      for (int i = 0; i < Pixels.CHANNELS * count; i += Pixels.CHANNELS, at += step) {
        rgb[i] = data[at + red];
        rgb[i + 1] = data[at + green];
        rgb[i + 2] = data[at + blue];
      }
    };
  }
}
