// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.parquet;

import dev.hardwood.InputFile;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;

/// Maps a file for the Parquet library, and unmaps it on [#close]. The library's own input leaves
/// its mapping to the garbage collector, so that the file would stay mapped for an unknown time.
final class MappedInput implements InputFile {
  private final Path file;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment bytes;

  MappedInput(Path file) throws IOException {
    this.file = file;
    try (FileChannel channel = FileChannel.open(file)) {
      bytes = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size(), arena);
    } catch (IOException e) {
      arena.close();
      throw e;
    }
  }

  @Override
  public void open() {}

  /// Returns a range of the file. An empty range is refused, because the library would ask for it
  /// endlessly if a page's header claims more bytes than its column has.
  @Override
  public ByteBuffer readRange(long offset, int length) throws IOException {
    if (offset < 0 || length <= 0 || length > bytes.byteSize() - offset) {
      throw new IOException(
          "a part of %d bytes at byte %d is not within the file".formatted(length, offset));
    }
    return bytes.asSlice(offset, length).asByteBuffer();
  }

  @Override
  public long length() {
    return bytes.byteSize();
  }

  @Override
  public String name() {
    return file.toString();
  }

  @Override
  public void close() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }
}
