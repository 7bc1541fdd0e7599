// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.internal.natives.Libc;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Mapped memory whose pages the kernel provides when they are first touched. The kernel counts
/// untouched pages as available. Not thread-safe.
final class LazyPages {
  /// One call of `mincore` asks about this many bytes; its answer takes one byte for each page.
  private static final long STEP_BYTES = 256L << 20;

  private final long address;
  private final long size;

  /// All pages before this offset have been touched; they are not looked at again.
  private long touchedBytes;

  /// @param address page-aligned
  LazyPages(long address, long size) {
    this.address = address;
    this.size = size;
  }

  long size() {
    return size;
  }

  /// How many bytes have no page yet.
  long untouchedBytes() {
    if (touchedBytes == size) {
      return 0;
    }
    long page = Libc.INSTANCE.pageBytes();
    long untouched = 0;
    try (Arena arena = Arena.ofConfined()) {
      long most = Math.ceilDiv(Math.min(STEP_BYTES, size - touchedBytes), page);
      MemorySegment resident = arena.allocate(most);
      MemorySegment none = arena.allocate(most);
      for (long from = touchedBytes; from < size; from += STEP_BYTES) {
        long step = Math.min(STEP_BYTES, size - from);
        if (Libc.INSTANCE.mincore(address + from, step, resident) < 0) {
          return untouched + size - from;
        }
        long pages = Math.ceilDiv(step, page);
        // The last slabs of a load stay untouched for a long time. For them, one comparison of the
        // whole answer is faster than looking at each page.
        boolean untouchedWhole = MemorySegment.mismatch(resident, 0, pages, none, 0, pages) < 0;
        untouched += untouchedWhole ? step : untouchedBytes(from, step, resident);
      }
    }
    return untouched;
  }

  private long untouchedBytes(long from, long step, MemorySegment resident) {
    long page = Libc.INSTANCE.pageBytes();
    long untouched = 0;
    for (long at = 0; at < step; at += page) {
      long bytes = Math.min(page, step - at);
      if ((resident.get(ValueLayout.JAVA_BYTE, at / page) & 1) == 0) {
        untouched += bytes;
      } else if (touchedBytes == from + at) {
        touchedBytes += bytes;
      }
    }
    return untouched;
  }
}
