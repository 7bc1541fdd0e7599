// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.OptionalLong;

/// A header block of a tar archive, in any version of the format.
final class TarHeader {
  static final int BYTES = 512;

  private static final int NAME_BYTES = 100;
  private static final int SIZE = 124;
  private static final int SIZE_BYTES = 12;
  private static final int CHECKSUM = 148;
  private static final int CHECKSUM_BYTES = 8;
  private static final int TYPE = 156;
  private static final int MAGIC = 257;
  private static final int PREFIX = 345;
  private static final int PREFIX_BYTES = 155;

  /// The magic of the GNU format. Its headers have other fields at the offset at which ustar
  /// headers have the name's prefix.
  private static final byte[] GNU = "ustar  ".getBytes(StandardCharsets.ISO_8859_1);

  /// The highest byte of a number in base 256; the lower bits are part of the number.
  private static final int BASE_256 = 0x80;

  private final byte[] block;

  /// @param block the bytes of the block, which the header keeps
  TarHeader(byte[] block) {
    this.block = block;
  }

  /// Whether the block marks the end of an archive.
  boolean isZero() {
    for (byte each : block) {
      if (each != 0) {
        return false;
      }
    }
    return true;
  }

  /// Whether the block's checksum is right. It may be the sum of unsigned bytes or, as old
  /// writers computed it, of signed bytes.
  boolean hasItsChecksum() {
    OptionalLong stored = number(CHECKSUM, CHECKSUM_BYTES);
    long unsigned = 0;
    long signed = 0;
    for (int i = 0; i < BYTES; i++) {
      boolean counts = i < CHECKSUM || i >= CHECKSUM + CHECKSUM_BYTES;
      unsigned += counts ? Byte.toUnsignedInt(block[i]) : ' ';
      signed += counts ? block[i] : ' ';
    }
    return stored.isPresent() && (stored.getAsLong() == unsigned || stored.getAsLong() == signed);
  }

  /// The kind of the member, such as `0` for a file.
  char type() {
    return (char) Byte.toUnsignedInt(block[TYPE]);
  }

  /// The size of the data in bytes; empty if the field is no number from 0 to 2⁶³ - 1.
  OptionalLong size() {
    return number(SIZE, SIZE_BYTES);
  }

  String name() {
    String name = text(0, NAME_BYTES);
    boolean gnu = Arrays.equals(block, MAGIC, MAGIC + GNU.length, GNU, 0, GNU.length);
    String prefix = gnu ? "" : text(PREFIX, PREFIX_BYTES);
    return prefix.isEmpty() ? name : prefix + "/" + name;
  }

  private String text(int from, int length) {
    return text(Arrays.copyOfRange(block, from, from + length));
  }

  /// Decodes a text that ends at its first zero byte, if there is one. A text that is no UTF-8 is read as
  /// Latin-1, so that different names stay different.
  static String text(byte[] bytes) {
    int end = 0;
    while (end < bytes.length && bytes[end] != 0) {
      end++;
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, 0, end)).toString();
    } catch (CharacterCodingException _) {
      return new String(bytes, 0, end, StandardCharsets.ISO_8859_1);
    }
  }

  /// Reads octal digits among spaces, or a number in base 256.
  private OptionalLong number(int from, int length) {
    if (Byte.toUnsignedInt(block[from]) >= BASE_256) {
      long value = block[from] & (BASE_256 - 1);
      for (int i = from + 1; i < from + length; i++) {
        if (value > Long.MAX_VALUE >> Byte.SIZE) {
          return OptionalLong.empty();
        }
        value = value << Byte.SIZE | Byte.toUnsignedInt(block[i]);
      }
      return OptionalLong.of(value);
    }
    String digits = text(from, length).strip();
    // Twelve octal digits fit a long.
    return digits.chars().allMatch(digit -> digit >= '0' && digit <= '7')
        ? OptionalLong.of(digits.isEmpty() ? 0 : Long.parseLong(digits, 8))
        : OptionalLong.empty();
  }
}
