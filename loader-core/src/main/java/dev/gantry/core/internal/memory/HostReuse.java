// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// Freed host memory, for the next slab of about its size: the kernel clears each page of new memory, and a
/// virtual machine may have to ask its host for it, which takes as long as the bytes take from the page
/// cache, and up to ten times as long.
///
/// What is kept is at most a quarter of the memory that is then available, stays for ten seconds, and goes
/// earlier where the machine gets short of memory. Thread-safe.
final class HostReuse {
  /// Of the process, because slabs outlive sessions.
  static final HostReuse PROCESS =
      new HostReuse(
          () -> HostMemory.kernelBytes().orElse(0),
          CompletableFuture.delayedExecutor(500, TimeUnit.MILLISECONDS));

  /// Less is not worth a look at what is available.
  private static final long LEAST_BYTES = 1 << 20;

  private static final long IDLE_NANOS = 10_000_000_000L;

  private final LongSupplier availableBytes;
  private final Executor later;

  /// The least recently freed first.
  private final Deque<Kept> kept = new ArrayDeque<>();

  private long keptBytes;
  private boolean watched;

  private record Kept(HugePages pages, long freedNanos) {
    long bytes() {
      return pages.size();
    }
  }

  /// @param availableBytes besides what is kept
  /// @param later runs actions after a while
  HostReuse(LongSupplier availableBytes, Executor later) {
    this.availableBytes = availableBytes;
    this.later = later;
  }

  /// Memory of `size` bytes or some more, with arbitrary bytes in it.
  ///
  /// @throws dev.gantry.core.TransferException if the kernel has no room
  HugePages map(long size) {
    HugePages found = size < LEAST_BYTES ? null : take(size);
    return found == null ? HugePages.map(size) : found;
  }

  /// The smallest that is large enough, and of these the last freed, unless a fifth of it or more would be
  /// of no use.
  private synchronized @Nullable HugePages take(long size) {
    Kept best = null;
    for (Kept each : kept) {
      if (each.bytes() >= size
          && each.bytes() - size <= size / 4
          && (best == null || each.bytes() <= best.bytes())) {
        best = each;
      }
    }
    if (best == null) {
      return null;
    }
    kept.remove(best);
    keptBytes -= best.bytes();
    return best.pages;
  }

  /// Keeps memory that nothing uses any more, or frees it.
  void free(HugePages pages) {
    if (pages.size() < LEAST_BYTES || !keep(pages)) {
      pages.unmap();
    }
  }

  private boolean keep(HugePages pages) {
    long most = availableBytes.getAsLong() / 4;
    List<HugePages> dropped = new ArrayList<>();
    boolean fits;
    synchronized (this) {
      Kept added = new Kept(pages, System.nanoTime());
      fits = added.bytes() <= most;
      if (fits) {
        drop(most - added.bytes(), dropped);
        kept.add(added);
        keptBytes += added.bytes();
        watch();
      }
    }
    unmap(dropped);
    return fits;
  }

  private synchronized void watch() {
    if (!watched && !kept.isEmpty()) {
      watched = true;
      later.execute(this::look);
    }
  }

  private void look() {
    long most = availableBytes.getAsLong() / 4;
    List<HugePages> dropped = new ArrayList<>();
    synchronized (this) {
      watched = false;
      long now = System.nanoTime();
      while (!kept.isEmpty() && now - kept.getFirst().freedNanos > IDLE_NANOS) {
        dropEldest(dropped);
      }
      drop(most, dropped);
      watch();
    }
    unmap(dropped);
  }

  /// Until at most `most` bytes are left.
  private synchronized void drop(long most, List<HugePages> dropped) {
    while (keptBytes > most) {
      dropEldest(dropped);
    }
  }

  private synchronized void dropEldest(List<HugePages> dropped) {
    Kept eldest = kept.removeFirst();
    keptBytes -= eldest.bytes();
    dropped.add(eldest.pages);
  }

  private static void unmap(List<HugePages> dropped) {
    Cleanup.runAll(dropped.stream().<Runnable>map(pages -> pages::unmap).toList());
  }

  synchronized long keptBytes() {
    return keptBytes;
  }

  /// Gives all that is kept back to the kernel.
  ///
  /// @return whether there was some
  boolean freeIdle() {
    List<HugePages> dropped = new ArrayList<>();
    synchronized (this) {
      drop(0, dropped);
    }
    unmap(dropped);
    return !dropped.isEmpty();
  }
}
