// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/// Memory for blocks of which a read wants a part only: a few are kept for the next ones. Thread-safe.
final class BlockBuffers {
  private static final int MOST_KEPT = 32;

  private final Deque<MemorySegment> idle = new ArrayDeque<>();

  /// Memory in use until this is closed.
  final class Buffer implements AutoCloseable {
    private final MemorySegment memory;

    private Buffer(MemorySegment memory) {
      this.memory = memory;
    }

    MemorySegment first(long bytes) {
      return memory.asSlice(0, bytes);
    }

    @Override
    public void close() {
      give(memory);
    }
  }

  Buffer take() {
    MemorySegment memory = poll();
    return new Buffer(
        memory == null ? Arena.ofAuto().allocate(CacheEntry.BLOCK_BYTES, 4096) : memory);
  }

  private synchronized @Nullable MemorySegment poll() {
    return idle.poll();
  }

  private synchronized void give(MemorySegment memory) {
    if (idle.size() < MOST_KEPT) {
      idle.push(memory);
    }
  }
}
