// SPDX-License-Identifier: Apache-2.0
package dev.gantry.samples;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import dev.gantry.formats.shards.ShardOptions;
import dev.gantry.formats.shards.ShardWriter;
import java.awt.Color;
import java.awt.Graphics2D;
import java.awt.image.BufferedImage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.imageio.ImageIO;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/// The files that samples read, made in a temporary folder.
final class SampleInputs {
  private SampleInputs() {}

  /// Weights of more blocks than their header brings into a cache.
  static byte[] largeWeights() {
    int bytes = 3 << 20;
    String header =
        "{\"large\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%d]}}"
            .formatted(bytes, bytes);
    return ByteBuffer.allocate(Long.BYTES + header.length() + bytes)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(header.length())
        .put(header.getBytes(StandardCharsets.US_ASCII))
        .array();
  }

  static Path image(Path temporary) {
    BufferedImage image = new BufferedImage(40, 30, BufferedImage.TYPE_INT_RGB);
    image.setRGB(20, 15, 0xff8800);
    Path file = temporary.resolve("image.png");
    try {
      ImageIO.write(image, "png", file.toFile());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file;
  }

  /// Reddish pictures of one class and bluish ones of another.
  static Path pictures(Path temporary) {
    Path root = temporary.resolve("pictures");
    try {
      for (int i = 0; i < 40; i++) {
        BufferedImage image = new BufferedImage(40 + i, 60, BufferedImage.TYPE_INT_RGB);
        Graphics2D graphics = image.createGraphics();
        graphics.setColor(i % 2 == 0 ? new Color(200, 3 * i, 20) : new Color(20, 3 * i, 200));
        graphics.fillRect(i / 2, i / 2, 30, 40);
        graphics.dispose();
        Path folder = Files.createDirectories(root.resolve(i % 2 == 0 ? "red" : "blue"));
        String format = i % 4 < 2 ? "jpg" : "png";
        ImageIO.write(image, format, folder.resolve(i + "." + format).toFile());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return root;
  }

  /// Blocks in which each token is one more than the token before it.
  static Path tokens(Path temporary) {
    Path folder = temporary.resolve("tokens");
    if (Files.exists(folder)) {
      return folder;
    }
    Field field = new Field("tokens", DType.I32, TensorShape.of(33));
    try (ShardWriter writer = ShardWriter.create(folder, List.of(field), ShardOptions.defaults())) {
      for (int i = 0; i < 100; i++) {
        int first = i;
        int[] block = IntStream.range(0, 33).map(j -> (first + j) % 10).toArray();
        writer.append(Map.of("tokens", MemorySegment.ofArray(block)));
      }
      var _ = writer.finish();
    }
    return folder;
  }

  /// The pictures as samples, with their classes.
  static Path archive(Path temporary, Path pictures) {
    Path archive = temporary.resolve("pictures.tar");
    try (Stream<Path> files = Files.walk(pictures);
        TarArchiveOutputStream tar = new TarArchiveOutputStream(Files.newOutputStream(archive))) {
      for (Path file : files.filter(Files::isRegularFile).sorted().toList()) {
        String name = file.getFileName().toString();
        add(tar, name, Files.readAllBytes(file));
        String label = file.getParent().endsWith("red") ? "1" : "0";
        add(tar, name.replaceFirst("\\..*", ".cls"), label.getBytes(StandardCharsets.UTF_8));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return archive;
  }

  private static void add(TarArchiveOutputStream tar, String name, byte[] data) throws IOException {
    TarArchiveEntry entry = new TarArchiveEntry(name);
    entry.setSize(data.length);
    tar.putArchiveEntry(entry);
    tar.write(data);
    tar.closeArchiveEntry();
  }
}
