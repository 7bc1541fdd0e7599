// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.npy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/// Reads the bytes of one `.npy` in order; the `.npy` is a file or a member of an archive.
///
/// @param file the file that errors name
/// @param subject the start of an error's message; empty for a file of one array
/// @param offset the file offset of the `.npy`
/// @param length the size of the whole `.npy` in bytes
/// @param isCompressed whether the bytes at `offset` are compressed, so that errors cannot name
///     an offset within them
/// @param reader fills a buffer with the next bytes
public record NpyInput(
    Location file,
    String subject,
    long offset,
    long length,
    boolean isCompressed,
    Consumer<ByteBuffer> reader) {
  /// @param offset the file offset of the `.npy`
  public static NpyInput ofFile(FileBytes bytes, String subject, long offset, long length) {
    long[] position = {offset};
    return new NpyInput(
        bytes.file(),
        subject,
        offset,
        length,
        false,
        target -> {
          int count = target.remaining();
          bytes.readFully(target, position[0]);
          position[0] += count;
        });
  }

  /// Reads the next `count` bytes.
  public ByteBuffer next(int count) {
    ByteBuffer bytes = ByteBuffer.allocate(count);
    reader.accept(bytes);
    return bytes.flip();
  }

  /// @param position the fault's offset from the start of the `.npy`
  public MalformedFileException malformed(long position, String kind, String detail) {
    return new MalformedFileException(
        file, isCompressed ? offset : offset + position, kind, subject + detail);
  }
}
