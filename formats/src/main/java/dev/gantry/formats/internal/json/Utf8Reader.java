// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.json;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.formats.spi.FileBytes;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharsetDecoder;
import java.nio.charset.CoderResult;
import java.nio.charset.StandardCharsets;

/// Reads the characters of one section of a file through one small buffer. Bytes that are not UTF-8
/// (overlong forms, surrogates, cut sequences) are an error at their first byte. Not thread-safe.
///
/// Jackson reads these characters rather than the bytes: from bytes it would guess an encoding, skip a byte
/// order mark and accept some malformed sequences.
final class Utf8Reader extends Reader {
  private static final int BUFFER_BYTES = 64 * 1024;

  private final FileBytes source;
  private final long from;
  private final long to;
  private final CharsetDecoder decoder = StandardCharsets.UTF_8.newDecoder();
  private final ByteBuffer bytes = ByteBuffer.allocate(BUFFER_BYTES).limit(0);
  private long bufferedTo;
  private long charactersRead;

  /// The file offset that [#offset] has counted to: the first byte of character number `countedCharacters`.
  private long countedTo;

  private long countedCharacters;

  /// @param from the file offset of the section's first byte
  /// @param to the file offset just past its last byte
  Utf8Reader(FileBytes source, long from, long to) {
    this.source = source;
    this.from = from;
    this.to = to;
    this.bufferedTo = from;
    this.countedTo = from;
  }

  /// @param length at least 2, since a surrogate pair is not divided
  /// @throws MalformedFileException of kind `invalid-utf8`
  @Override
  public int read(char[] target, int at, int length) {
    if (length < 2) {
      throw new MisuseException("no room for a surrogate pair");
    }
    CharBuffer characters = CharBuffer.wrap(target, at, length);
    while (true) {
      CoderResult result = decoder.decode(bytes, characters, bufferedTo == to);
      int count = length - characters.remaining();
      if (count > 0) {
        charactersRead += count;
        return count;
      }
      if (result.isError()) {
        throw new MalformedFileException(
            source.file(), nextByte(), "invalid-utf8", "bytes that are not UTF-8");
      }
      if (bufferedTo == to) {
        return -1;
      }
      fill();
    }
  }

  /// Returns the file offset of a character's first byte, or the section's end if the section has fewer
  /// characters. This is fast in ASCII, and if offsets are asked for in ascending order.
  ///
  /// @param character its index among the `char`s of the section
  long offset(long character) {
    if (nextByte() - from == charactersRead) {
      return Math.min(from + character, to);
    }
    if (character < countedCharacters) {
      countedTo = from;
      countedCharacters = 0;
    }
    ByteBuffer block = ByteBuffer.allocate(0);
    while (true) {
      if (!block.hasRemaining()) {
        block = block(countedTo);
        if (!block.hasRemaining()) {
          return to;
        }
      }
      byte first = block.get(block.position());
      int wide = first >= (byte) 0xF0 && first < 0 ? 2 : 1;
      if (countedCharacters + wide > character) {
        return countedTo;
      }
      int length = first >= 0 ? 1 : wide == 2 ? 4 : first >= (byte) 0xE0 ? 3 : 2;
      countedCharacters += wide;
      countedTo += length;
      block.position(Math.min(block.position() + length, block.limit()));
    }
  }

  /// Reads the section's bytes from `offset` on, as many as a buffer takes.
  private ByteBuffer block(long offset) {
    int length = Math.clamp(to - offset, 0, 1024);
    ByteBuffer block = ByteBuffer.allocate(length);
    source.readFully(block, offset);
    return block.flip();
  }

  private long nextByte() {
    return bufferedTo - bytes.remaining();
  }

  private void fill() {
    bytes.compact();
    bytes.limit((int) Math.min(bytes.limit(), bytes.position() + to - bufferedTo));
    int count = bytes.remaining();
    source.readFully(bytes, bufferedTo);
    bufferedTo += count;
    bytes.flip();
  }

  /// Does not close the file, which belongs to the caller.
  @Override
  public void close() {}
}
