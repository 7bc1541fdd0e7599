// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.Extent;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.archive.ZipMember;
import dev.gantry.formats.internal.files.ExtentStream;
import dev.gantry.formats.internal.files.SequentialInput;
import dev.gantry.formats.spi.FileBytes;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// The bytes of a pickle in order, from a file or a member of an archive. Not thread-safe.
final class PickleInput extends SequentialInput {
  /// The longest line of the text opcodes.
  private static final int MAX_LINE_BYTES = 1 << 16;

  private final Extent extent;
  private final boolean isDeflated;

  private long opcodeOffset;

  private PickleInput(Extent extent, long length, boolean isDeflated, InputStream stream) {
    super(stream, length);
    this.extent = extent;
    this.isDeflated = isDeflated;
  }

  static PickleInput of(FileBytes file, ZipMember member) {
    return new PickleInput(member.extent(), member.size(), member.isDeflated(), member.open(file));
  }

  static PickleInput of(FileBytes file, Extent extent) {
    return new PickleInput(extent, extent.length(), false, new ExtentStream(file, extent));
  }

  /// The file offset of the next byte; if the bytes are compressed, the offset at which they
  /// begin.
  long position() {
    return isDeflated ? extent.offset() : extent.offset() + taken();
  }

  /// Reads the next opcode.
  int opcode() {
    opcodeOffset = position();
    return read();
  }

  /// The file offset of the opcode that was read last.
  long opcodeOffset() {
    return opcodeOffset;
  }

  @Override
  protected MalformedFileException tooLarge(long most) {
    return fault("pickle-too-large", "its values take more than " + most + " bytes");
  }

  @Override
  protected MalformedFileException damaged(IOException cause) {
    MalformedFileException damage =
        malformed(position(), "invalid-deflate", "compressed bytes are damaged");
    damage.initCause(cause);
    return damage;
  }

  @Override
  protected MalformedFileException pastEnd(long count) {
    return malformed(position(), "pickle-past-end", "the pickle ends before its STOP");
  }

  double real() {
    return ByteBuffer.wrap(bytes(Double.BYTES)).order(ByteOrder.BIG_ENDIAN).getDouble();
  }

  /// Reads a line; the result lacks the line feed.
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

  /// Makes the error for an opcode that breaks the rules of pickles.
  MalformedFileException invalid(String detail) {
    return fault("invalid-pickle", detail);
  }

  /// Makes an error at the opcode that was read last.
  MalformedFileException fault(String kind, String detail) {
    return malformed(opcodeOffset, kind, detail);
  }

  private MalformedFileException malformed(long offset, String kind, String detail) {
    return new MalformedFileException(extent.file(), offset, kind, detail);
  }
}
