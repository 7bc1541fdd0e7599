// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.spi.FileBytes;
import java.nio.ByteBuffer;
import java.util.function.Consumer;

/// The bytes of one `.npy`, read from its beginning: a file, or a member of an archive.
///
/// @param file for errors
/// @param subject what an error begins with; empty for a file of one array
/// @param offset where in the file it begins
/// @param length of the whole `.npy` in bytes
/// @param isCompressed whether `offset` is that of compressed bytes, so that none inside can be named
/// @param reader fills a buffer with the next bytes
record NpyInput(
    Location file,
    String subject,
    long offset,
    long length,
    boolean isCompressed,
    Consumer<ByteBuffer> reader) {
  /// @param offset where in the file it begins
  static NpyInput ofFile(FileBytes bytes, String subject, long offset, long length) {
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

  /// The next bytes, as many as are asked for.
  ByteBuffer next(int count) {
    ByteBuffer bytes = ByteBuffer.allocate(count);
    reader.accept(bytes);
    return bytes.flip();
  }

  /// @param position bytes from the start of the `.npy`
  MalformedFileException malformed(long position, String kind, String detail) {
    return new MalformedFileException(
        file, isCompressed ? offset : offset + position, kind, subject + detail);
  }
}
