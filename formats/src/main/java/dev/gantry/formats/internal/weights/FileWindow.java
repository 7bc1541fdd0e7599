// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Extent;
import dev.gantry.formats.spi.FileBytes;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/// A window in memory on an extent, which moves with its reader. It does not own the file. For
/// one thread.
final class FileWindow implements StridedReader.Window, AutoCloseable {
  private static final long BYTES = 4 << 20;

  private final Extent extent;
  private final FileBytes file;

  /// The arena is shared, since a store may fill the buffer on its own thread.
  private final Arena arena = Arena.ofShared();

  private final MemorySegment buffer;
  private long start;
  private long end;

  FileWindow(FileBytes file, Extent extent) {
    this.extent = extent;
    this.file = file;
    this.buffer = arena.allocate(Math.min(BYTES, Math.max(1, extent.length())), Long.BYTES);
  }

  @Override
  public MemorySegment at(long offset, long least) {
    if (offset < start || offset + least > end) {
      start = offset;
      end = Math.min(extent.length(), offset + buffer.byteSize());
      file.readFully(buffer.asSlice(0, end - start).asByteBuffer(), extent.offset() + start);
    }
    return buffer.asSlice(offset - start, end - offset);
  }

  @Override
  public void close() {
    arena.close();
  }
}
