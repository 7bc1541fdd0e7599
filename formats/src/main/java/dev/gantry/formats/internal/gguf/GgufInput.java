// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.files.ExtentStream;
import dev.gantry.formats.internal.files.SequentialInput;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Reads the values of a header in order. Not thread-safe.
final class GgufInput extends SequentialInput {
  private final Location file;

  GgufInput(FileBytes file) {
    super(new ExtentStream(file, new Extent(file.file(), 0, file.length())), file.length());
    this.file = file.file();
  }

  long offset() {
    return taken();
  }

  int int32() {
    return (int) number(Integer.BYTES);
  }

  long int64() {
    return number(Long.BYTES);
  }

  short int16() {
    return (short) number(Short.BYTES);
  }

  byte int8() {
    return (byte) read();
  }

  /// Reads a count of items that follow.
  ///
  /// @param most the most items that Gantry accepts
  /// @param leastBytes the fewest bytes that an item has in the file
  /// @param noun names the items in errors, in the plural
  long count(long most, long leastBytes, String noun) {
    long at = offset();
    long count = int64();
    if (count < 0 || count > most) {
      throw malformed(
          at,
          "too-many-" + noun,
          "%s %s, more than %s".formatted(Long.toUnsignedString(count), noun, most));
    }
    if (count > remaining() / leastBytes) {
      throw malformed(
          at,
          "header-past-end",
          "the header says that %s %s follow, and the file ends %s bytes later: it is cut or damaged"
              .formatted(count, noun, remaining()));
    }
    return count;
  }

  /// Reads a string that must be UTF-8 and no longer than `most` bytes.
  String name(int most) {
    long at = offset();
    long length = int64();
    if (length < 0 || length > most) {
      throw malformed(
          at,
          "name-too-long",
          "a name of " + Long.toUnsignedString(length) + " bytes, more than " + most);
    }
    charge(2 * length);
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes(length))).toString();
    } catch (CharacterCodingException _) {
      throw malformed(at + Long.BYTES, "invalid-utf8", "a name that is not UTF-8");
    }
  }

  /// Reads a string, keeps its first bytes, and skips the others.
  ///
  /// @param most the most bytes to keep
  String text(int most) {
    long length = int64();
    if (length < 0 || length > remaining()) {
      throw pastEnd(length);
    }
    charge(2 * Math.min(length, most));
    String text = new String(bytes(Math.min(length, most)), StandardCharsets.UTF_8);
    if (length <= most) {
      return text;
    }
    skip(length - most);
    return text + "…";
  }

  @Override
  protected MalformedFileException pastEnd(long count) {
    return malformed(
        offset(),
        "header-past-end",
        "the header needs %s more bytes, and there are %s"
            .formatted(Long.toUnsignedString(count), remaining()));
  }

  @Override
  protected MalformedFileException tooLarge(long most) {
    return malformed(
        offset(), "header-too-large", "its notes and names take more than " + most + " bytes");
  }

  MalformedFileException malformed(long at, String kind, String detail) {
    return new MalformedFileException(file, at, kind, detail);
  }
}
