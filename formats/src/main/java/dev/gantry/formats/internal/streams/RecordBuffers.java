// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.Set;

/// The buffers of a dataset's batches. As many exist as there were batches under way at once.
/// Thread-safe.
final class RecordBuffers implements AutoCloseable {
  private final long mostBytes;
  private final Deque<RecordBuffer> idle = new ArrayDeque<>();
  private final Set<RecordBuffer> taken = new HashSet<>();
  private boolean closed;

  /// @param mostBytes of each
  RecordBuffers(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  synchronized RecordBuffer take() {
    if (closed) {
      throw new MisuseException("this dataset is closed");
    }
    RecordBuffer buffer = idle.isEmpty() ? new RecordBuffer(mostBytes) : idle.pop();
    buffer.clear();
    taken.add(buffer);
    return buffer;
  }

  synchronized void giveBack(RecordBuffer buffer) {
    if (taken.remove(buffer)) {
      idle.push(buffer);
    }
  }

  /// Frees all of them, also those of sources that were not closed.
  @Override
  public synchronized void close() {
    closed = true;
    idle.forEach(RecordBuffer::free);
    idle.clear();
    taken.forEach(RecordBuffer::free);
    taken.clear();
  }
}
