// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.datasets;

import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import javax.imageio.IIOImage;
import javax.imageio.ImageIO;
import javax.imageio.ImageWriteParam;
import javax.imageio.ImageWriter;
import javax.imageio.stream.MemoryCacheImageOutputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/// Makes WebDataset archives of JPEGs that take a decoder as long as photos do. The pictures are
/// noise of all scales, whose amplitude grows with the scale, so that the files are as large as
/// photos.
final class NoisePictures {
  private static final int ARCHIVES = 4;
  private static final int WIDTH = 500;
  private static final int HEIGHT = 375;
  private static final float QUALITY = 0.9f;
  private static final int COARSEST = 256;

  /// The amplitude of the finest noise, chosen so that files have about 70 KB.
  private static final double AMPLITUDE = 13;

  private static final int[] SHIFTS = {16, 8, 0};

  private NoisePictures() {}

  /// Makes the archives that are missing. The class of a picture is the last digit of its number.
  static List<Path> archives(Path folder, int pictures) throws IOException {
    Files.createDirectories(folder);
    List<Path> archives = new ArrayList<>();
    for (int i = 0; i < ARCHIVES; i++) {
      Path archive = folder.resolve("pictures-%d-%d.tar".formatted(pictures, i));
      if (Files.notExists(archive)) {
        write(archive, pictures * i / ARCHIVES, pictures * (i + 1) / ARCHIVES);
      }
      archives.add(archive);
    }
    return archives;
  }

  private static void write(Path archive, int from, int to) throws IOException {
    byte[][] jpegs =
        IntStream.range(from, to)
            .parallel()
            .mapToObj(number -> jpeg(picture(number)))
            .toArray(byte[][]::new);
    Path temporary = archive.resolveSibling(archive.getFileName() + ".part");
    try (var tar = new TarArchiveOutputStream(Files.newOutputStream(temporary))) {
      for (int i = 0; i < jpegs.length; i++) {
        int number = from + i;
        add(tar, number + ".jpg", jpegs[i]);
        add(tar, number + ".cls", ("" + number % 10).getBytes(StandardCharsets.UTF_8));
      }
    }
    Path _ = Files.move(temporary, archive);
  }

  private static void add(TarArchiveOutputStream tar, String name, byte[] bytes)
      throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name);
    entry.setSize(bytes.length);
    tar.putArchiveEntry(entry);
    tar.write(bytes);
    tar.closeArchiveEntry();
  }

  /// Returns a picture that depends on the number alone.
  private static BufferedImage picture(int number) {
    SplittableRandom random = new SplittableRandom(number);
    float[] light = new float[WIDTH * HEIGHT];
    for (int period = COARSEST; period >= 1; period /= 2) {
      addNoise(light, period, amplitude(period), random);
    }
    BufferedImage image = new BufferedImage(WIDTH, HEIGHT, BufferedImage.TYPE_INT_RGB);
    int[] pixels = new int[light.length];
    for (int shift : SHIFTS) {
      float[] values = light.clone();
      for (int period = COARSEST; period >= 4; period /= 2) {
        addNoise(values, period, amplitude(period) / 3, random);
      }
      for (int i = 0; i < pixels.length; i++) {
        pixels[i] |= Math.clamp(Math.round(128 + values[i]), 0, 255) << shift;
      }
    }
    image.setRGB(0, 0, WIDTH, HEIGHT, pixels, 0, WIDTH);
    return image;
  }

  private static float amplitude(int period) {
    return (float) (AMPLITUDE * Math.sqrt(period));
  }

  /// Adds noise: random numbers at the corners of a grid of squares, and bilinear interpolation
  /// inside the squares.
  ///
  /// @param period the side of a square in pixels
  private static void addNoise(
      float[] values, int period, float amplitude, SplittableRandom random) {
    int columns = WIDTH / period + 2;
    float[] corners = new float[columns * (HEIGHT / period + 2)];
    for (int i = 0; i < corners.length; i++) {
      corners[i] = (float) random.nextDouble(-amplitude, amplitude);
    }
    for (int y = 0; y < HEIGHT; y++) {
      float down = (float) (y % period) / period;
      for (int x = 0; x < WIDTH; x++) {
        float across = (float) (x % period) / period;
        int corner = y / period * columns + x / period;
        float above = corners[corner] * (1 - across) + corners[corner + 1] * across;
        int lower = corner + columns;
        float below = corners[lower] * (1 - across) + corners[lower + 1] * across;
        values[y * WIDTH + x] += above * (1 - down) + below * down;
      }
    }
  }

  private static byte[] jpeg(BufferedImage image) {
    ImageWriter writer = ImageIO.getImageWritersByFormatName("jpeg").next();
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    try (var stream = new MemoryCacheImageOutputStream(bytes)) {
      ImageWriteParam parameters = writer.getDefaultWriteParam();
      parameters.setCompressionMode(ImageWriteParam.MODE_EXPLICIT);
      parameters.setCompressionQuality(QUALITY);
      writer.setOutput(stream);
      writer.write(null, new IIOImage(image, null, null), parameters);
    } catch (IOException e) {
      throw new AssertionError("memory was written to", e);
    } finally {
      writer.dispose();
    }
    return bytes.toByteArray();
  }
}
