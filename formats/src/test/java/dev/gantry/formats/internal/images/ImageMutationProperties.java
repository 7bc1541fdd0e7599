// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.formats.internal.images.ImageDecoder.Options;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/// A damaged picture is decoded, or refused by an `IOException` of one line: nothing else happens.
class ImageMutationProperties {
  private static final List<byte[]> PICTURES = read();

  private static List<byte[]> read() {
    try (Stream<Path> files = Files.list(ImageCorpusTest.CORPUS)) {
      return files
          .filter(file -> file.toString().matches(".*\\.(jpg|png)"))
          .sorted()
          .map(ImageMutationProperties::bytes)
          .filter(bytes -> bytes.length > 0 && bytes.length < 20_000)
          .toList();
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  private static byte[] bytes(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new IllegalStateException(e);
    }
  }

  @Property
  void aMutatedPictureIsDecodedOrRefused(@ForAll long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    byte[] picture = PICTURES.get(random.nextInt(PICTURES.size())).clone();
    int changes = random.nextInt(1, 5);
    for (int i = 0; i < changes; i++) {
      // Most faults that a parser can meet are near the start.
      int bound = random.nextBoolean() ? Math.min(picture.length, 700) : picture.length;
      picture[random.nextInt(bound)] = (byte) random.nextInt(256);
    }
    if (random.nextInt(8) == 0) {
      picture = Arrays.copyOf(picture, random.nextInt(picture.length));
    }
    if (random.nextBoolean()) {
      PngSums.mend(picture);
    }
    Options options =
        new Options(
            8,
            8,
            new Crop.RandomResized(0.1, 1, 0.5, 2),
            0.5,
            Kernel.BICUBIC,
            true,
            true,
            false,
            1 << 20);
    try {
      ImageHeader header = ImageHeader.of(MemorySegment.ofArray(picture), options.maxPixels());
      boolean jpeg = header.kind() == ImageHeader.Kind.JPEG;
      // The JDK's decoder of JPEG can hang on a damaged picture while the Serial or Parallel
      // collector runs.
      if (!jpeg || TurboJpeg.loaded().isPresent()) {
        ImageCorpusTest.decode(picture, options, jpeg, seed);
      }
    } catch (IOException e) {
      assertThat(e.getMessage()).isNotBlank();
    }
  }

  /// Mends the checksums of a PNG, so that mutations pass them.
  private static final class PngSums {
    private static void mend(byte[] png) {
      ByteBuffer buffer = ByteBuffer.wrap(png);
      int at = 8;
      while (at + 12 <= png.length && png[0] == (byte) 0x89) {
        int bytes = buffer.getInt(at);
        if (bytes < 0 || bytes > png.length - at - 12) {
          return;
        }
        CRC32 sum = new CRC32();
        sum.update(png, at + 4, bytes + 4);
        buffer.putInt(at + 8 + bytes, (int) sum.getValue());
        at += bytes + 12;
      }
    }
  }
}
