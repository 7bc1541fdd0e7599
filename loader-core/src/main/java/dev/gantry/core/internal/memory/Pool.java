// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Keeps things of one kind that nothing uses now, such as memory, streams and buffers, for reuse: making them takes
/// longer than using them.
///
/// Bounded by the total size of the things. Each is kept for some seconds, which [IdleWatch] checks. Thread-safe.
public final class Pool<T> {
  private record Kept<T>(T thing, long size, long sinceNanos) {}

  private final LiveResources.@Nullable Kind kind;
  private final long keptNanos;
  private final LongSupplier maxSize;
  private final Consumer<T> release;
  private final BooleanSupplier look = this::look;

  /// The things that are kept, the most recently used first.
  private final Deque<Kept<T>> all = new ArrayDeque<>();

  private long size;

  /// Held while things are released that were kept, so that [#free] returns when they are.
  private final ReentrantLock releasing = new ReentrantLock();

  /// @param seconds how long a thing stays here
  /// @param maxSize the most that all things together may have; asked whenever a thing comes, and now and then
  /// @param release frees a thing
  public Pool(long seconds, LongSupplier maxSize, Consumer<T> release) {
    this(null, TimeUnit.SECONDS.toNanos(seconds), maxSize, release);
  }

  /// @param kind the kind as which [LiveResources] counts the things that are kept; null to count nothing
  Pool(
      LiveResources.@Nullable Kind kind,
      long keptNanos,
      LongSupplier maxSize,
      Consumer<T> release) {
    this.kind = kind;
    this.keptNanos = keptNanos;
    this.maxSize = maxSize;
    this.release = release;
  }

  /// Takes the best fitting thing: the smallest of `wanted` or up to a quarter more, and among equals the most recently
  /// used. Null if there is none.
  public synchronized @Nullable T take(long wanted) {
    Kept<T> best = null;
    for (Kept<T> kept : all) {
      long spare = kept.size() - wanted;
      if (spare >= 0 && spare <= wanted / 4 && (best == null || kept.size() < best.size())) {
        best = kept;
        if (spare == 0) {
          break;
        }
      }
    }
    if (best == null) {
      return null;
    }
    remove(best);
    return best.thing();
  }

  private void remove(Kept<T> kept) {
    all.remove(kept);
    count(-kept.size());
  }

  private void count(long more) {
    size += more;
    if (kind != null) {
      LiveResources.add(kind, more);
    }
  }

  /// Keeps a thing that nothing uses any more. Where there is no room, releases those that were idle longest.
  public void keep(T thing, long thingSize) {
    long most = maxSize.getAsLong();
    if (thingSize > most) {
      release.accept(thing);
      return;
    }
    Kept<T> kept;
    List<Kept<T>> dropped;
    try {
      kept = new Kept<>(thing, thingSize, System.nanoTime());
      dropped = new ArrayList<>();
    } catch (OutOfMemoryError _) {
      // There is no heap for the entry, so the thing is released instead of kept.
      release.accept(thing);
      return;
    }
    synchronized (this) {
      while (size > most - thingSize) {
        Kept<T> eldest = all.getLast();
        remove(eldest);
        dropped.add(eldest);
      }
      all.push(kept);
      count(thingSize);
    }
    IdleWatch.watch(look);
    release(dropped);
  }

  /// Keeps a thing that nothing uses any more, also where there is no room: [IdleWatch] releases it soon then, since
  /// releasing may wait for others.
  void keepForNow(T thing, long thingSize) {
    synchronized (this) {
      all.push(new Kept<>(thing, thingSize, System.nanoTime()));
      count(thingSize);
    }
    IdleWatch.watch(look);
  }

  private void release(Collection<Kept<T>> gone) {
    if (!gone.isEmpty()) {
      Cleanup.forEach(gone, kept -> release.accept(kept.thing()));
    }
  }

  /// Releases all things that are kept. Waits for those that another thread is releasing.
  public void free() {
    free(_ -> true);
  }

  private void free(Predicate<Kept<T>> chosen) {
    releasing.lock();
    try {
      List<Kept<T>> freed;
      synchronized (this) {
        freed = all.stream().filter(chosen).toList();
        freed.forEach(this::remove);
      }
      release(freed);
    } finally {
      releasing.unlock();
    }
  }

  /// Waits for what another thread is releasing.
  ///
  /// @return whether there was something
  boolean awaitReleases() {
    boolean busy = releasing.isLocked();
    releasing.lock();
    try {
      return busy;
    } finally {
      releasing.unlock();
    }
  }

  private boolean look() {
    if (maxSize.getAsLong() < size()) {
      free();
    }
    long now = System.nanoTime();
    free(kept -> now - kept.sinceNanos() > keptNanos);
    return size() > 0;
  }

  /// The size of all things that are kept.
  public synchronized long size() {
    return size;
  }
}
