// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.source;

import dev.gantry.core.internal.store.SourceFile;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// The decompressed bytes of a file from some offset on. It does not own the file. Not
/// thread-safe.
public interface ByteSource extends AutoCloseable {
  int END = -1;

  /// How many bytes to request of a remote file. A smaller request takes hardly less time.
  int REMOTE_CHUNK_BYTES = 8 << 20;

  /// Returns how many bytes of a file to read at a time.
  ///
  /// @param local the answer for a local file
  static int chunkBytes(SourceFile file, int local) {
    return file.isLocal()
        ? local
        : Math.max(local, (int) Math.min(REMOTE_CHUNK_BYTES, file.size()));
  }

  /// Reads the next bytes, at least one, and returns their number; [#END] at the end.
  ///
  /// @param target native memory, not empty
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  /// @throws IOException if the bytes cannot be decompressed
  int read(MemorySegment target) throws IOException;

  /// Skips bytes without reading them; the source must have as many.
  ///
  /// @throws UnsupportedOperationException if the bytes are compressed
  default void skip(long bytes) {
    throw new UnsupportedOperationException("compressed bytes must be read");
  }

  /// An upper bound on the number of bytes left.
  long mostLeft();

  @Override
  default void close() {}

  /// A file's bytes as they are.
  final class Plain implements ByteSource {
    private final SourceFile file;
    private long at;

    /// @param from the offset of the first byte, at most the file's size
    public Plain(SourceFile file, long from) {
      this.file = file;
      this.at = from;
    }

    @Override
    public int read(MemorySegment target) {
      if (at == file.size()) {
        return END;
      }
      int count = (int) Math.min(target.byteSize(), file.size() - at);
      boolean _ = file.read(target.asSlice(0, count), at, count, false);
      at += count;
      return count;
    }

    @Override
    public void skip(long bytes) {
      at += bytes;
    }

    @Override
    public long mostLeft() {
      return file.size() - at;
    }
  }
}
