// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.webdataset;

import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.internal.source.ByteSource;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/// Copies the bytes that are read from another source to a file, from the call of [#copyTo] on.
/// It owns the source and the file. For one thread.
final class CopiedSource implements ByteSource {
  private final ByteSource source;
  private @Nullable Copy copy;

  CopiedSource(ByteSource source) {
    this.source = source;
  }

  /// The file that takes the copy.
  private record Copy(Path path, FileChannel channel) {}

  /// Begins to copy the bytes that are read.
  ///
  /// @param path an empty file
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  void copyTo(Path path) {
    try {
      copy = new Copy(path, FileChannel.open(path, StandardOpenOption.WRITE));
    } catch (IOException e) {
      throw FileErrors.of("open", path.toString(), e);
    }
  }

  @Override
  public int read(MemorySegment target) throws IOException {
    int count = source.read(target);
    if (copy != null && count > 0) {
      write(copy, target.asSlice(0, count).asByteBuffer());
    }
    return count;
  }

  private static void write(Copy copy, ByteBuffer bytes) {
    try {
      while (bytes.hasRemaining()) {
        int _ = copy.channel().write(bytes);
      }
    } catch (IOException e) {
      throw FileErrors.of("write", copy.path().toString(), e);
    }
  }

  @Override
  public long mostLeft() {
    return source.mostLeft();
  }

  @Override
  public void close() {
    source.close();
    if (copy == null) {
      return;
    }
    try {
      copy.channel().close();
    } catch (IOException e) {
      throw FileErrors.of("write", copy.path().toString(), e);
    }
  }
}
