// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.source;

import dev.gantry.core.internal.memory.HostSlab;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/// A window in memory on a stream of bytes, which slides from the stream's start to its end. It
/// owns its source. Not thread-safe.
public final class ByteWindow implements AutoCloseable {
  /// The smallest size of a window, and the size of the first read after bytes were skipped.
  public static final int LEAST_CHUNK_BYTES = 4 << 10;

  private final ByteSource source;
  private final int chunkBytes;
  private Memory memory;

  /// The size of the next read; it is less than a chunk after bytes were skipped.
  private int step;

  private int start;
  private int end;
  private long position;

  /// @param position the offset in the stream of the source's first byte
  /// @param chunkBytes how many bytes to read at a time
  public ByteWindow(ByteSource source, long position, int chunkBytes) {
    this.source = source;
    this.position = position;
    this.chunkBytes = chunkBytes;
    step = chunkBytes;
    memory = new Memory(chunkBytes);
  }

  /// The window's memory. It has an arena of its own, so that a segment that was returned earlier
  /// throws instead of reading freed memory.
  private static final class Memory {
    final HostSlab slab;
    final Arena arena = Arena.ofShared();
    final MemorySegment view;
    final ByteBuffer bytes;

    Memory(int size) {
      slab = HostSlab.allocate(size);
      view = slab.segment().reinterpret(arena, null);
      bytes = slab.segment().asByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    int size() {
      return bytes.capacity();
    }

    void free() {
      arena.close();
      slab.release();
    }
  }

  /// The offset in the stream of the first byte in the window.
  public long position() {
    return position;
  }

  /// The largest number of bytes that may follow from the window's first byte on.
  public long mostLeft() {
    long ahead = source.mostLeft();
    int here = end - start;
    return ahead > Long.MAX_VALUE - here ? Long.MAX_VALUE : ahead + here;
  }

  /// Reads more bytes if the window has fewer than `count`. Memory grows no faster than bytes
  /// arrive.
  ///
  /// @return how many bytes the window has; fewer than `count` only if the stream ends
  public int require(int count) throws IOException {
    while (end - start < count) {
      makeRoom(count);
      int most = Math.max(step, count - (end - start));
      int room = Math.min(memory.size() - end, most);
      int read = source.read(memory.slab.segment().asSlice(end, room));
      if (read == ByteSource.END) {
        break;
      }
      end += read;
      step = Math.min(2 * step, chunkBytes);
    }
    return end - start;
  }

  private void makeRoom(int count) {
    if (memory.size() - start >= count && memory.size() > end) {
      return;
    }
    int kept = end - start;
    if (kept == memory.size()) {
      long grown = Math.min(2L * memory.size(), Math.max(count, memory.size() + 1L));
      Memory larger = new Memory(Math.toIntExact(grown));
      MemorySegment.copy(memory.slab.segment(), start, larger.slab.segment(), 0, kept);
      memory.free();
      memory = larger;
    } else {
      MemorySegment.copy(memory.slab.segment(), start, memory.slab.segment(), 0, kept);
    }
    start = 0;
    end = kept;
  }

  /// Drops the first `count` bytes of the window.
  public void consume(int count) {
    start += count;
    position += count;
    if (start == end) {
      start = 0;
      end = 0;
    }
  }

  /// Skips bytes, which may lie beyond the window. Those beyond the window are not read if the
  /// source is an uncompressed file.
  public void pass(long count) {
    int here = end - start;
    if (count <= here) {
      consume((int) count);
      return;
    }
    source.skip(count - here);
    start = 0;
    end = 0;
    position += count;
    step = LEAST_CHUNK_BYTES;
  }

  /// Returns the window's memory, little endian, whose first byte is at [#start]. Valid until the next [#require].
  public ByteBuffer bytes() {
    return memory.bytes;
  }

  public int start() {
    return start;
  }

  /// Returns a part of the window's bytes, valid until the next [#require].
  public MemorySegment slice(int from, int length) {
    return memory.view.asSlice(start + from, length);
  }

  @Override
  public void close() {
    try (source) {
      memory.free();
    }
  }
}
