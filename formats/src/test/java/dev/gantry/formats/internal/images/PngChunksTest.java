// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.images;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.formats.images.ImageDecoding;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.zip.CRC32;
import java.util.zip.DeflaterOutputStream;
import org.junit.jupiter.api.Test;

class PngChunksTest {
  @Test
  void coloursThatAPaletteLacksAreBlack() throws IOException {
    // The values are those of Pillow, which takes them from libpng's rules.
    assertThat(pixels(8, "0a141e 28323c", "000102c8")).isEqualTo("0a141e28323c000000000000");
    assertThat(pixels(2, "0a141e 28323c", "1b")).isEqualTo("0a141e28323c000000000000");
    assertThat(pixels(8, "000102 030405 060708 09", "00010203"))
        .isEqualTo("000102030405060708000000");
    assertThat(pixels(1, "000102 030405 060708", "50")).isEqualTo("000102030405000102030405");
  }

  /// Decodes a picture of four pixels in a row.
  ///
  /// @param bits the bits of a pixel
  private static String pixels(int bits, String palette, String row) throws IOException {
    ByteArrayOutputStream png = new ByteArrayOutputStream();
    png.write(HexFormat.of().parseHex("89504e470d0a1a0a"));
    write(png, "IHDR", hex("00000004 00000001 %02x 03 00 00 00".formatted(bits)));
    write(png, "PLTE", hex(palette));
    ByteArrayOutputStream data = new ByteArrayOutputStream();
    try (DeflaterOutputStream deflated = new DeflaterOutputStream(data)) {
      deflated.write(hex("00" + row));
    }
    write(png, "IDAT", data.toByteArray());
    write(png, "IEND", new byte[0]);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment encoded = arena.allocateFrom(ValueLayout.JAVA_BYTE, png.toByteArray());
      MemorySegment target = arena.allocate(12);
      ImageDecoding.of(1, 4).decode(encoded, target, 0);
      return HexFormat.of().formatHex(target.toArray(ValueLayout.JAVA_BYTE));
    }
  }

  private static byte[] hex(String text) {
    return HexFormat.of().parseHex(text.replace(" ", ""));
  }

  private static void write(ByteArrayOutputStream png, String type, byte[] data)
      throws IOException {
    DataOutputStream out = new DataOutputStream(png);
    byte[] name = type.getBytes(StandardCharsets.US_ASCII);
    CRC32 sum = new CRC32();
    sum.update(name);
    sum.update(data);
    out.writeInt(data.length);
    out.write(name);
    out.write(data);
    out.writeInt((int) sum.getValue());
  }
}
