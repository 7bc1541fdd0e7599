// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.ForwardingFileCalls;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.atomic.AtomicLong;

/// When large writes begin and end, and how fast the disk takes the same writes from a program that does
/// nothing else. Thread-safe.
final class WriteClock extends ForwardingFileCalls {
  private static final long LARGE = 1 << 20;
  private static final int REQUEST_BYTES = 16 << 20;
  private static final long PATTERN_BYTES = 1L << 28;
  private static final int THREADS = 4;

  private final AtomicLong first = new AtomicLong();
  private final AtomicLong last = new AtomicLong();

  WriteClock() {
    super(Libc.INSTANCE);
  }

  void reset() {
    first.set(Long.MAX_VALUE);
    last.set(0);
  }

  /// When the first large write began, as `System#nanoTime`.
  long first() {
    return first.get();
  }

  /// When the last one ended.
  long last() {
    return last.get();
  }

  @Override
  public long pwrite(int fd, MemorySegment source, long length, long offset) {
    if (length < LARGE) {
      return super.pwrite(fd, source, length, offset);
    }
    first.accumulateAndGet(System.nanoTime(), Math::min);
    long written = super.pwrite(fd, source, length, offset);
    last.accumulateAndGet(System.nanoTime(), Math::max);
    return written;
  }

  /// Writes so many bytes to a new file past the page cache, its space allocated before, and removes it.
  ///
  /// @return the seconds of writes and `fsync`
  double ceiling(Path file, long bytes) {
    long whole = bytes / REQUEST_BYTES * REQUEST_BYTES;
    HostSlab pattern = HostSlab.allocate(PATTERN_BYTES);
    SplittableRandom random = new SplittableRandom(1);
    for (long at = 0; at < PATTERN_BYTES; at += Long.BYTES) {
      pattern.segment().set(ValueLayout.JAVA_LONG, at, random.nextLong());
    }
    int fd = check(open(file, FileCalls.O_CREAT | FileCalls.O_RDWR | directFlag(), 0644));
    try {
      int _ = check(fallocate(fd, 0, 0, whole));
      AtomicLong next = new AtomicLong();
      long start = System.nanoTime();
      List<Thread> writers = new ArrayList<>();
      for (int i = 0; i < THREADS; i++) {
        writers.add(
            Thread.ofPlatform()
                .start(() -> {
                  for (long at = next.getAndAdd(REQUEST_BYTES);
                      at < whole;
                      at = next.getAndAdd(REQUEST_BYTES)) {
                    MemorySegment piece =
                        pattern.segment().asSlice(at % PATTERN_BYTES, REQUEST_BYTES);
                    if (pwrite(fd, piece, REQUEST_BYTES, at) != REQUEST_BYTES) {
                      throw new IllegalStateException("a write of the ceiling was cut short");
                    }
                  }
                }));
      }
      for (Thread writer : writers) {
        writer.join();
      }
      int _ = check(fsync(fd));
      return (System.nanoTime() - start) / 1e9 * bytes / whole;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    } finally {
      int _ = check(close(fd));
      int _ = check(unlink(file));
      pattern.release();
    }
  }

  private static int check(int result) {
    if (result < 0) {
      throw new TransferException("ceiling", "a file", Errno.failure(-result));
    }
    return result;
  }
}
