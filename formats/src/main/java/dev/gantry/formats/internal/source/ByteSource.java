// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.source;

import dev.gantry.core.internal.store.SourceFile;
import java.io.IOException;
import java.lang.foreign.MemorySegment;

/// The bytes of a file from some place on, decompressed. Does not own the file. Not thread-safe.
public interface ByteSource extends AutoCloseable {
  int END = -1;

  /// A request for more takes little longer than one for less.
  int REMOTE_CHUNK_BYTES = 8 << 20;

  /// How much of a file to read at a time.
  ///
  /// @param local of a local file
  static int chunkBytes(SourceFile file, int local) {
    return file.isLocal()
        ? local
        : Math.max(local, (int) Math.min(REMOTE_CHUNK_BYTES, file.size()));
  }

  /// The next bytes: at least one, or [#END].
  ///
  /// @param target native memory, not empty
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  /// @throws IOException if the bytes cannot be decompressed
  int read(MemorySegment target) throws IOException;

  /// Passes by bytes that are there, without reading them.
  ///
  /// @throws UnsupportedOperationException if they are compressed
  default void skip(long bytes) {
    throw new UnsupportedOperationException("compressed bytes must be read");
  }

  /// An upper bound of how many bytes are left.
  long mostLeft();

  @Override
  default void close() {}

  /// A file's bytes as they are.
  final class Plain implements ByteSource {
    private final SourceFile file;
    private long at;

    /// @param from offset of the first byte, at most the file's size
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
