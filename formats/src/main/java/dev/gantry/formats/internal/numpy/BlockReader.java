// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.numpy;

import dev.gantry.core.Location;
import dev.gantry.formats.internal.files.FileBytes;
import java.nio.ByteBuffer;

/// Reads a file's metadata by blocks, and keeps the last few: an archive's directory and headers are
/// many small reads close to each other, each of which could be a request to a server. For one
/// thread.
final class BlockReader {
  private static final int BLOCK_BYTES = 32 << 10;
  private static final int KEPT = 4;

  private final FileBytes file;
  private final long[] numbers = new long[KEPT];
  private final ByteBuffer[] blocks = new ByteBuffer[KEPT];
  private int next;

  BlockReader(FileBytes file) {
    this.file = file;
  }

  Location file() {
    return file.file();
  }

  long length() {
    return file.length();
  }

  /// Fills `target` from `offset` on; the file must have as many bytes.
  void readFully(ByteBuffer target, long offset) {
    long at = offset;
    while (target.hasRemaining()) {
      ByteBuffer block = block(at / BLOCK_BYTES);
      int from = (int) (at % BLOCK_BYTES);
      int count = Math.min(target.remaining(), block.limit() - from);
      target.put(block.slice(from, count));
      at += count;
    }
  }

  private ByteBuffer block(long number) {
    for (int i = 0; i < KEPT; i++) {
      if (blocks[i] != null && numbers[i] == number) {
        return blocks[i];
      }
    }
    long offset = number * BLOCK_BYTES;
    ByteBuffer block = ByteBuffer.allocate((int) Math.min(BLOCK_BYTES, file.length() - offset));
    file.readFully(block, offset);
    numbers[next] = number;
    blocks[next] = block.flip();
    next = (next + 1) % KEPT;
    return block;
  }
}
