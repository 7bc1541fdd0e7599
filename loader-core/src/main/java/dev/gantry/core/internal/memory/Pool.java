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

/// Keeps idle resources of one kind for reuse, such as memory, streams or buffers, because making
/// a new one takes longer than using it.
///
/// The total size of the kept resources is bounded. Each is kept for some seconds; then
/// [IdleWatch] has it released. Thread-safe.
public final class Pool<T> {
  private record Kept<T>(T thing, long size, long sinceNanos) {}

  private final LiveResources.@Nullable Kind kind;
  private final long keptNanos;
  private final LongSupplier maxSize;
  private final Consumer<T> release;

  /// Made with the pool, so that what is no longer kept is released also without heap.
  private final Consumer<Kept<T>> releaseKept;

  private final BooleanSupplier look = this::look;

  /// The kept resources, the most recently used first.
  private final Deque<Kept<T>> all = new ArrayDeque<>();

  private long size;

  /// The lock held while kept resources are released, so that [#free] returns only after their
  /// release.
  private final ReentrantLock releasing = new ReentrantLock();

  /// @param seconds how long an idle resource is kept
  /// @param maxSize the largest total size of the kept resources; asked in each call of [#keep],
  ///     and by [IdleWatch]
  /// @param release releases a resource
  public Pool(long seconds, LongSupplier maxSize, Consumer<T> release) {
    this(null, TimeUnit.SECONDS.toNanos(seconds), maxSize, release);
  }

  /// @param kind the kind under which [LiveResources] counts the kept resources; null to count
  ///     nothing
  Pool(
      LiveResources.@Nullable Kind kind,
      long keptNanos,
      LongSupplier maxSize,
      Consumer<T> release) {
    this.kind = kind;
    this.keptNanos = keptNanos;
    this.maxSize = maxSize;
    this.release = release;
    this.releaseKept = kept -> release.accept(kept.thing());
  }

  /// Takes the smallest kept resource whose size is between `wanted` and a quarter more; among
  /// several of that size, the most recently used. Null if there is none.
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

  /// Keeps a resource that nothing uses any more. If the total size exceeds the bound then,
  /// releases the resources that were idle longest.
  public void keep(T thing, long thingSize) {
    long most;
    Kept<T> kept;
    List<Kept<T>> dropped;
    try {
      most = maxSize.getAsLong();
      kept = new Kept<>(thing, thingSize, System.nanoTime());
      dropped = new ArrayList<>();
    } catch (OutOfMemoryError _) {
      // The heap has no memory for the entry, so the resource is released instead of kept.
      release.accept(thing);
      return;
    }
    if (thingSize > most) {
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

  /// Keeps a resource that nothing uses any more, even if the total size exceeds the bound then:
  /// [IdleWatch] releases resources soon. The caller does not release any itself, because that may
  /// wait for the device.
  void keepForNow(T thing, long thingSize) {
    Kept<T> kept;
    try {
      kept = new Kept<>(thing, thingSize, System.nanoTime());
    } catch (OutOfMemoryError _) {
      release.accept(thing);
      return;
    }
    synchronized (this) {
      all.push(kept);
      count(thingSize);
    }
    IdleWatch.watch(look);
  }

  private void release(Collection<Kept<T>> gone) {
    if (!gone.isEmpty()) {
      Cleanup.forEach(gone, releaseKept);
    }
  }

  /// Releases all kept resources, and waits for those that another thread is releasing.
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

  /// Waits until another thread has released the resources that it is releasing.
  ///
  /// @return whether another thread was releasing resources
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

  /// The total size of the kept resources.
  public synchronized long size() {
    return size;
  }
}
