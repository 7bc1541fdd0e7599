// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Keeps things of one kind that nothing uses now, such as memory, streams and buffers, for their next use: making
/// them takes longer than using them.
///
/// Bounded by the things' sizes together, and each is kept for some seconds: [IdleWatch] is the clock. Thread-safe.
public final class Pool<T> {
  private record Kept<T>(T thing, long size, long sinceNanos) {}

  private final LiveResources.@Nullable Kind kind;
  private final long keptNanos;
  private final LongSupplier maxSize;
  private final Consumer<T> release;
  private final BooleanSupplier look = this::look;

  /// The last used first.
  private final Deque<Kept<T>> all = new ArrayDeque<>();

  private long size;

  /// @param seconds how long a thing stays here
  /// @param maxSize of all things together; asked whenever one comes, and now and then
  /// @param release gives a thing back to where it came from
  public Pool(long seconds, LongSupplier maxSize, Consumer<T> release) {
    this(null, TimeUnit.SECONDS.toNanos(seconds), maxSize, release);
  }

  /// @param kind as which [LiveResources] counts the things, as those in use; null if it does not
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

  /// The thing of at least `wanted`, but not much more, that fits best, and of these the last used; null if none is here.
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

  /// Keeps a thing that nothing uses any more, in place of what was idle longest where there is no room.
  public void keep(T thing, long thingSize) {
    long most = maxSize.getAsLong();
    if (thingSize > most) {
      release.accept(thing);
      return;
    }
    List<Kept<T>> dropped = new ArrayList<>();
    synchronized (this) {
      while (size > most - thingSize) {
        Kept<T> eldest = all.getLast();
        remove(eldest);
        dropped.add(eldest);
      }
      all.push(new Kept<>(thing, thingSize, System.nanoTime()));
      count(thingSize);
    }
    IdleWatch.watch(look);
    release(dropped);
  }

  private void release(Collection<Kept<T>> gone) {
    Cleanup.runAll(
        gone.stream().<Runnable>map(kept -> () -> release.accept(kept.thing())).toList());
  }

  /// Releases all.
  public void free() {
    free(_ -> true);
  }

  private void free(Predicate<Kept<T>> chosen) {
    List<Kept<T>> freed;
    synchronized (this) {
      freed = all.stream().filter(chosen).toList();
      freed.forEach(this::remove);
    }
    release(freed);
  }

  private boolean look() {
    if (maxSize.getAsLong() < size()) {
      free();
    }
    long now = System.nanoTime();
    free(kept -> now - kept.sinceNanos() > keptNanos);
    return size() > 0;
  }

  /// The size of all that is here.
  public synchronized long size() {
    return size;
  }
}
