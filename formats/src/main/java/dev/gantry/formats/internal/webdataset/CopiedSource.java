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

/// Copies what is read of another source to a file, which is empty before. It owns both. For one thread.
final class CopiedSource implements ByteSource {
  private final ByteSource source;
  private final Path path;
  private final FileChannel copy;

  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  CopiedSource(ByteSource source, Path path) {
    this.source = source;
    this.path = path;
    try {
      copy = FileChannel.open(path, StandardOpenOption.WRITE);
    } catch (IOException e) {
      throw FileErrors.of("open", path.toString(), e);
    }
  }

  @Override
  public int read(MemorySegment target) throws IOException {
    int count = source.read(target);
    if (count > 0) {
      write(target.asSlice(0, count).asByteBuffer());
    }
    return count;
  }

  private void write(ByteBuffer bytes) {
    try {
      while (bytes.hasRemaining()) {
        int _ = copy.write(bytes);
      }
    } catch (IOException e) {
      throw FileErrors.of("write", path.toString(), e);
    }
  }

  @Override
  public long mostLeft() {
    return source.mostLeft();
  }

  @Override
  public void close() {
    source.close();
    try {
      copy.close();
    } catch (IOException e) {
      throw FileErrors.of("write", path.toString(), e);
    }
  }
}
