// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.batch.DevicePictures;
import dev.gantry.formats.images.ImageDecoding;
import dev.gantry.formats.internal.examples.RawRecord;
import dev.gantry.formats.spi.FieldDecoder;
import java.awt.image.BufferedImage;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import javax.imageio.ImageIO;
import org.junit.jupiter.api.Test;

/// Field decoders whose batch goes to a device that decodes pictures.
class FieldDecodersTest {
  private static final ImageDecoding PICTURES = ImageDecoding.of(8, 8).onDevice();
  private static final int BYTES = 8 * 8 * 3;

  /// Decodes a white picture.
  ///
  /// @return how many pictures were left to the device
  private static int leftToDevice(FieldDecoder decoder, MemorySegment target) throws IOException {
    BufferedImage white = new BufferedImage(16, 16, BufferedImage.TYPE_INT_RGB);
    white.createGraphics().fillRect(0, 0, 16, 16);
    ByteArrayOutputStream jpeg = new ByteArrayOutputStream();
    assertThat(ImageIO.write(white, "jpeg", jpeg)).isTrue();
    AtomicInteger left = new AtomicInteger();
    DevicePictures device = (_, _, _) -> left.incrementAndGet() > 0;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment encoded = arena.allocateFrom(ValueLayout.JAVA_BYTE, jpeg.toByteArray());
      RawRecord record = new RawRecord(Path.of("file"), 0, 0, encoded);
      ScopedValue.where(DevicePictures.CURRENT, device)
          .run(() -> record.decode("image", decoder, 0, encoded, target));
    }
    return left.get();
  }

  @Test
  void aDecoderThatCallsAnotherGetsThePixels() throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment target = arena.allocate(BYTES);
      assertThat(leftToDevice(PICTURES, target)).isEqualTo(1);
      FieldDecoder halved =
          (encoded, pixels, seed) -> {
            PICTURES.decode(encoded, pixels, seed);
            for (int i = 0; i < BYTES; i++) {
              int value = pixels.get(ValueLayout.JAVA_BYTE, i) & 0xFF;
              pixels.set(ValueLayout.JAVA_BYTE, i, (byte) (value / 2));
            }
          };
      assertThat(leftToDevice(halved, target)).isZero();
      assertThat(target.toArray(ValueLayout.JAVA_BYTE)).containsOnly(127);
    }
  }
}
