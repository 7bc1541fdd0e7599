// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.commit.Crc32c;
import dev.gantry.formats.internal.files.FileBytes;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;

/// CRC32C checksums of what is read as metadata, in small pieces.
final class FileChecksum {
  private static final int STEP_BYTES = 64 << 10;

  private FileChecksum() {}

  /// @param from offset of the first byte
  /// @param to offset just past the last
  static int of(FileBytes file, long from, long to) {
    byte[] piece = new byte[(int) Math.min(STEP_BYTES, to - from)];
    int sum = Crc32c.OF_NOTHING;
    for (long at = from; at < to; ) {
      int step = (int) Math.min(STEP_BYTES, to - at);
      file.readFully(ByteBuffer.wrap(piece, 0, step), at);
      sum = Crc32c.combine(sum, Crc32c.of(MemorySegment.ofArray(piece).asSlice(0, step)), step);
      at += step;
    }
    return sum;
  }
}
