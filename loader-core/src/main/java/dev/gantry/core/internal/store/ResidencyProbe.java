// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.spi.Residency;
import java.lang.foreign.Arena;
import java.util.concurrent.ThreadLocalRandom;

/// Asks the kernel which bytes of an open file are in the page cache, by the first means that the
/// kernel supports. Thread-safe.
final class ResidencyProbe {

  /// The magic numbers of file systems, as in `linux/magic.h`.
  private static final long TMPFS = 0x01021994;

  private static final long RAMFS = 0x858458f6L;
  private static final long OVERLAYFS = 0x794c7630;

  /// How many windows of a range are asked about. The windows stand for the whole range, since
  /// asking about all of its pages would take some percent of the time of reading the range from
  /// the page cache.
  private static final int WINDOWS = 4;

  private static final long WINDOW_BYTES = 16 << 10;

  /// A range of at most this many bytes is one window.
  private static final long ONE_WINDOW_BYTES = 256 << 10;

  private static final long MAPPING_BYTES = 1L << 30;

  private enum Means {
    /// Does not ask the kernel, because the file system keeps all bytes in memory.
    IN_MEMORY,
    CACHESTAT,
    /// Asks `mincore(2)` about a mapping.
    MINCORE,
    /// Reads one byte of each window without waiting; the byte stands for the window.
    NO_WAIT,
    NONE
  }

  private final FileCalls calls;
  private final int descriptor;
  private volatile Means means;

  /// @param descriptor a descriptor that reads through the page cache, and stays open
  ResidencyProbe(FileCalls calls, int descriptor) {
    this.calls = calls;
    this.descriptor = descriptor;
    long fileSystem = calls.fileSystem(descriptor);
    if (fileSystem == TMPFS || fileSystem == RAMFS) {
      means = Means.IN_MEMORY;
    } else if (fileSystem == OVERLAYFS) {
      // Files of overlayfs have no pages of their own, so cachestat finds none. A mapping is of
      // the underlying file, so mincore finds its pages. To callers whom cachestat refuses,
      // however, mincore reports every page as present.
      means = calls.cachedBytes(descriptor, 0, 1) < 0 ? Means.NONE : Means.MINCORE;
    } else {
      means = Means.CACHESTAT;
    }
  }

  /// Whether the file system keeps its files in memory.
  boolean inMemory() {
    return means == Means.IN_MEMORY;
  }

  Residency of(long offset, long length) {
    while (true) {
      Means asked = means;
      switch (asked) {
        case IN_MEMORY -> {
          return Residency.HOT;
        }
        case NONE -> {
          return Residency.UNKNOWN;
        }
        case CACHESTAT, MINCORE, NO_WAIT -> {
          Residency answer = ask(asked, offset, length);
          if (answer != Residency.UNKNOWN) {
            return answer;
          }
          // cachestat is new in Linux 6.5 (ENOSYS), and refuses files that the caller neither owns
          // nor may write (EPERM).
          means = asked == Means.CACHESTAT ? Means.NO_WAIT : Means.NONE;
        }
      }
    }
  }

  /// Asks about one window after another, until the rest cannot change the answer.
  private Residency ask(Means asked, long offset, long length) {
    int windows = length <= ONE_WINDOW_BYTES ? 1 : WINDOWS;
    long window = windows == 1 ? length : WINDOW_BYTES;
    long step = windows == 1 ? 0 : (length - window) / (windows - 1);
    long half = (windows * window + 1) / 2;
    long cached = 0;
    for (int i = 0; i < windows && cached < half; i++) {
      long answer = cachedBytes(asked, offset + i * step, window);
      if (answer < 0) {
        return Residency.UNKNOWN;
      }
      cached += Math.min(answer, window);
      if (cached + (windows - 1 - i) * window < half) {
        return Residency.COLD;
      }
    }
    return Residency.HOT;
  }

  private long cachedBytes(Means asked, long offset, long length) {
    return switch (asked) {
      case CACHESTAT -> calls.cachedBytes(descriptor, offset, length);
      case MINCORE -> calls.mappedBytes(descriptor, offset, length);
      case NO_WAIT -> readWithoutWaiting(offset, length);
      case IN_MEMORY -> length;
      case NONE -> -1;
    };
  }

  /// Reads one byte at a random place of the window. The kernel then fetches a page that was not in memory; a later
  /// call must not take this page for the whole window.
  private long readWithoutWaiting(long offset, long length) {
    long at = offset + (length > 1 ? ThreadLocalRandom.current().nextLong(length) : 0);
    try (Arena arena = Arena.ofConfined()) {
      long count;
      do {
        count = calls.preadNoWait(descriptor, arena.allocate(1), 1, at);
      } while (count == -Errno.EINTR.code());
      return count == -Errno.EAGAIN.code() ? 0 : count < 0 ? count : length;
    }
  }

  /// How many of the first `size` bytes are in memory; -1 if the kernel does not tell.
  long residentBytes(long size) {
    return switch (means) {
      case IN_MEMORY -> size;
      case CACHESTAT -> Math.clamp(calls.cachedBytes(descriptor, 0, size), -1, size);
      case MINCORE -> mappedBytes(size);
      case NO_WAIT, NONE -> -1;
    };
  }

  private long mappedBytes(long size) {
    long sum = 0;
    for (long done = 0; done < size; done += MAPPING_BYTES) {
      long length = Math.min(MAPPING_BYTES, size - done);
      long answer = calls.mappedBytes(descriptor, done, length);
      if (answer < 0) {
        return -1;
      }
      sum += Math.min(answer, length);
    }
    return sum;
  }
}
