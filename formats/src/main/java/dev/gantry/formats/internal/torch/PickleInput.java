// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.archive.ExtentStream;
import dev.gantry.formats.internal.archive.ZipMember;
import dev.gantry.formats.spi.FileBytes;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// The bytes of a pickle in order, from a file or a member of an archive. For one thread.
final class PickleInput implements AutoCloseable {
  /// The most memory that a pickle's values may take. State dictionaries take some thousand bytes a tensor.
  private static final long MAX_VALUE_BYTES = 192 << 20;

  /// The longest line of the text opcodes.
  private static final int MAX_LINE_BYTES = 1 << 16;

  private final Extent extent;
  private final long length;
  private final boolean isDeflated;
  private final InputStream stream;

  /// The bytes that were read from the stream last, and how many of them were taken.
  private final byte[] window = new byte[8 << 10];

  private int windowBytes;
  private int windowTaken;

  /// How many bytes lie before the window.
  private long before;

  /// What the values take that were made.
  private long used;

  private long opcodeOffset;

  private PickleInput(Extent extent, long length, boolean isDeflated, InputStream stream) {
    this.extent = extent;
    this.length = length;
    this.isDeflated = isDeflated;
    this.stream = stream;
  }

  static PickleInput of(FileBytes file, ZipMember member) {
    return new PickleInput(member.extent(), member.size(), member.isDeflated(), member.open(file));
  }

  static PickleInput of(FileBytes file, Extent extent) {
    return new PickleInput(extent, extent.length(), false, new ExtentStream(file, extent));
  }

  /// The file offset of the next byte; of compressed bytes, where they begin.
  long position() {
    return isDeflated ? extent.offset() : extent.offset() + before + windowTaken;
  }

  /// How many bytes are left.
  long remaining() {
    return length - before - windowTaken;
  }

  /// Reads the next opcode.
  int opcode() {
    opcodeOffset = position();
    return read();
  }

  /// The file offset of the opcode.
  long opcodeOffset() {
    return opcodeOffset;
  }

  /// Counts the memory of values, before they are made.
  void charge(long bytes) {
    used += bytes;
    if (used > MAX_VALUE_BYTES) {
      throw fault("pickle-too-large", "its values take more than " + MAX_VALUE_BYTES + " bytes");
    }
  }

  int read() {
    requireWindow();
    return Byte.toUnsignedInt(window[windowTaken++]);
  }

  /// Reads on if all bytes of the window were taken.
  private void requireWindow() {
    if (windowTaken < windowBytes) {
      return;
    }
    requireRemaining(1);
    before += windowBytes;
    windowTaken = 0;
    try {
      windowBytes = stream.readNBytes(window, 0, (int) Math.min(window.length, length - before));
    } catch (IOException e) {
      throw damaged(e);
    }
    if (windowBytes == 0) {
      throw cut();
    }
  }

  private MalformedFileException damaged(IOException cause) {
    MalformedFileException damage =
        malformed(position(), "invalid-deflate", "compressed bytes are damaged");
    damage.initCause(cause);
    return damage;
  }

  private MalformedFileException cut() {
    return malformed(position(), "pickle-past-end", "the pickle ends before its STOP");
  }

  /// Reads a little-endian number of at most eight bytes, without sign if it has fewer than eight.
  long number(int bytes) {
    long value = 0;
    for (int i = 0; i < bytes; i++) {
      value |= (long) read() << (i * Byte.SIZE);
    }
    return value;
  }

  double real() {
    return ByteBuffer.wrap(bytes(Double.BYTES)).order(ByteOrder.BIG_ENDIAN).getDouble();
  }

  /// Reads bytes of a length that the file gives.
  byte[] bytes(long count) {
    requireRemaining(count);
    byte[] bytes = new byte[Math.toIntExact(count)];
    for (int done = 0; done < bytes.length; ) {
      requireWindow();
      int step = Math.min(bytes.length - done, windowBytes - windowTaken);
      System.arraycopy(window, windowTaken, bytes, done, step);
      windowTaken += step;
      done += step;
    }
    return bytes;
  }

  void skip(long count) {
    requireRemaining(count);
    long here = Math.min(count, windowBytes - windowTaken);
    windowTaken += (int) here;
    try {
      stream.skipNBytes(count - here);
      before += count - here;
    } catch (EOFException _) {
      throw cut();
    } catch (IOException e) {
      throw damaged(e);
    }
  }

  private void requireRemaining(long count) {
    if (count < 0 || count > remaining()) {
      throw cut();
    }
  }

  /// Reads to the end of a line, which is left out.
  byte[] line() {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int each = read(); each != '\n'; each = read()) {
      if (line.size() == MAX_LINE_BYTES) {
        throw malformed(
            position(), "pickle-line-too-long", "more than " + MAX_LINE_BYTES + " bytes in a line");
      }
      line.write(each);
    }
    return line.toByteArray();
  }

  /// A fault of an opcode that breaks the rules of pickles.
  MalformedFileException invalid(String detail) {
    return fault("invalid-pickle", detail);
  }

  /// A fault of the opcode.
  MalformedFileException fault(String kind, String detail) {
    return malformed(opcodeOffset, kind, detail);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(extent.file(), offset, kind, detail);
  }

  @Override
  public void close() {
    try {
      stream.close();
    } catch (IOException e) {
      throw damaged(e);
    }
  }
}
