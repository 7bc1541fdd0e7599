// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/// Reads the values of a header in order, little endian, through one small buffer. For one thread.
final class GgufInput {
  private static final int BUFFER_BYTES = 64 << 10;

  private final FileBytes file;
  private final ByteBuffer buffer =
      ByteBuffer.allocate(BUFFER_BYTES).order(ByteOrder.LITTLE_ENDIAN).limit(0);

  /// The file offset of the byte behind the buffer.
  private long bufferedTo;

  GgufInput(FileBytes file) {
    this.file = file;
  }

  long offset() {
    return bufferedTo - buffer.remaining();
  }

  /// How many bytes the file has from here on.
  long remaining() {
    return file.length() - offset();
  }

  int int32() {
    return need(Integer.BYTES).getInt();
  }

  long int64() {
    return need(Long.BYTES).getLong();
  }

  short int16() {
    return need(Short.BYTES).getShort();
  }

  byte int8() {
    return need(1).get();
  }

  /// Reads the count of what follows.
  ///
  /// @param most the most that Gantry takes
  /// @param leastBytes the fewest bytes that each of them has in the file
  /// @param noun says what is counted, in the plural
  long count(long most, long leastBytes, String noun) {
    long at = offset();
    long count = int64();
    long room = Math.min(most, remaining() / leastBytes);
    if (count < 0 || count > room) {
      throw malformed(
          at,
          "too-many-" + noun,
          "%s %s, and there is room for %s".formatted(Long.toUnsignedString(count), noun, room));
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
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(bytes((int) length)))
          .toString();
    } catch (CharacterCodingException _) {
      throw malformed(at + Long.BYTES, "invalid-utf8", "a name that is not UTF-8");
    }
  }

  /// Reads a string, keeps its first bytes, and passes over the others.
  ///
  /// @param most how many bytes are kept
  String text(int most) {
    long at = offset();
    long length = int64();
    if (length < 0 || length > remaining()) {
      throw pastEnd(at, Long.toUnsignedString(length));
    }
    String text = new String(bytes((int) Math.min(length, most)), StandardCharsets.UTF_8);
    if (length <= most) {
      return text;
    }
    skip(length - most);
    return text + "…";
  }

  /// Passes over bytes.
  void skip(long count) {
    if (count < 0 || count > remaining()) {
      throw pastEnd(offset(), Long.toUnsignedString(count));
    }
    if (count <= buffer.remaining()) {
      buffer.position(buffer.position() + (int) count);
    } else {
      bufferedTo = offset() + count;
      buffer.limit(0);
    }
  }

  private byte[] bytes(int count) {
    if (count > remaining()) {
      throw pastEnd(offset(), Integer.toString(count));
    }
    byte[] bytes = new byte[count];
    int buffered = Math.min(count, buffer.remaining());
    buffer.get(bytes, 0, buffered);
    if (buffered < count) {
      file.readFully(ByteBuffer.wrap(bytes, buffered, count - buffered), bufferedTo);
      bufferedTo += count - buffered;
    }
    return bytes;
  }

  private ByteBuffer need(int count) {
    if (buffer.remaining() < count) {
      if (count > remaining()) {
        throw pastEnd(offset(), Integer.toString(count));
      }
      long from = offset();
      buffer.clear().limit((int) Math.min(BUFFER_BYTES, file.length() - from));
      file.readFully(buffer, from);
      buffer.flip();
      bufferedTo = from + buffer.limit();
    }
    return buffer;
  }

  private MalformedFileException pastEnd(long at, String count) {
    return malformed(
        at,
        "header-past-end",
        "the header needs " + count + " more bytes, and there are " + remaining());
  }

  MalformedFileException malformed(long at, String kind, String detail) {
    return new MalformedFileException(file.file(), at, kind, detail);
  }
}
