// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.formats.internal.examples.RecordSink;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

/// A pool of the buffers of a dataset's batches, and of the memory of threads that read records. It grows
/// to the most batches, and the most reading threads, that there were at once. Thread-safe.
final class RecordBuffers implements AutoCloseable {
  /// The largest memory of a thread that is kept: only very long records need more.
  private static final long MAX_KEPT_BYTES = 8 << 20;

  private final long mostBytes;
  private final Deque<RecordBuffer> idle = new ArrayDeque<>();
  private final Set<RecordBuffer> taken = new HashSet<>();
  private final Deque<RecordBuffer.Scratch> scratch = new ArrayDeque<>();
  private boolean closed;

  /// @param mostBytes the most bytes of each buffer's records
  RecordBuffers(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  synchronized RecordBuffer take() {
    if (closed) {
      throw new MisuseException("this dataset is closed");
    }
    RecordBuffer buffer = idle.isEmpty() ? new RecordBuffer(mostBytes) : idle.pop();
    taken.add(buffer);
    return buffer;
  }

  void giveBack(RecordBuffer buffer) {
    synchronized (this) {
      if (!taken.remove(buffer)) {
        return;
      }
      buffer.clear();
      idle.push(buffer);
    }
  }

  /// Reads records of a buffer with pooled memory, as [RecordBuffer#read] does.
  void read(RecordBuffer buffer, int from, int to, RecordSink sink) {
    RecordBuffer.Scratch own = takeScratch();
    try {
      buffer.read(from, to, own, sink);
    } finally {
      giveBack(own);
    }
  }

  private synchronized RecordBuffer.Scratch takeScratch() {
    return scratch.isEmpty() ? new RecordBuffer.Scratch() : scratch.pop();
  }

  private synchronized void giveBack(RecordBuffer.Scratch own) {
    if (closed || own.bytes() > MAX_KEPT_BYTES) {
      own.free();
    } else {
      scratch.push(own);
    }
  }

  /// Frees all buffers, also those of sources that were not closed.
  @Override
  public synchronized void close() {
    closed = true;
    Cleanup.forEach(idle, RecordBuffer::free);
    idle.clear();
    Cleanup.forEach(taken, RecordBuffer::free);
    taken.clear();
    scratch.forEach(RecordBuffer.Scratch::free);
    scratch.clear();
  }
}
