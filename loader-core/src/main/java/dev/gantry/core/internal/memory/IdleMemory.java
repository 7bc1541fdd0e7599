// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/// Memory of one kind that nothing uses now, kept for the next slab of about its size: making it takes
/// longer than filling it.
///
/// Bounded in bytes, and kept for some seconds. [LiveResources] counts its bytes as those of slabs.
/// Thread-safe.
final class IdleMemory<M> {
  private record Kept<M>(M memory, long bytes, long sinceNanos) {}

  private final LiveResources.Kind kind;
  private final long keptNanos;
  private final LongSupplier mostBytes;
  private final Consumer<M> release;
  private final BooleanSupplier look = this::look;

  /// The last used first.
  private final Deque<Kept<M>> all = new ArrayDeque<>();

  private long bytes;

  /// @param keptNanos how long memory stays here
  /// @param mostBytes how many bytes stay here; asked whenever memory comes, and now and then
  /// @param release gives memory back to where it came from
  IdleMemory(LiveResources.Kind kind, long keptNanos, LongSupplier mostBytes, Consumer<M> release) {
    this.kind = kind;
    this.keptNanos = keptNanos;
    this.mostBytes = mostBytes;
    this.release = release;
  }

  /// Memory of at least `wanted` bytes, but not much more; null if none is here.
  synchronized @Nullable M take(long wanted) {
    Optional<Kept<M>> best =
        all.stream()
            .filter(kept -> kept.bytes() >= wanted && kept.bytes() - wanted <= wanted / 4)
            .min(Comparator.comparingLong(Kept::bytes));
    best.ifPresent(this::remove);
    return best.map(Kept::memory).orElse(null);
  }

  private void remove(Kept<M> kept) {
    all.remove(kept);
    bytes -= kept.bytes();
    LiveResources.add(kind, -kept.bytes());
  }

  /// Keeps memory that nothing uses any more, in place of what was idle longest where there is no room.
  void keep(M memory, long size) {
    long most = mostBytes.getAsLong();
    if (size > most) {
      release.accept(memory);
      return;
    }
    List<Kept<M>> dropped = new ArrayList<>();
    synchronized (this) {
      while (bytes + size > most) {
        Kept<M> eldest = all.getLast();
        remove(eldest);
        dropped.add(eldest);
      }
      all.push(new Kept<>(memory, size, System.nanoTime()));
      bytes += size;
      LiveResources.add(kind, size);
    }
    IdleWatch.watch(look);
    release(dropped);
  }

  private void release(List<Kept<M>> gone) {
    Cleanup.runAll(
        gone.stream().<Runnable>map(kept -> () -> release.accept(kept.memory())).toList());
  }

  /// Releases all.
  void free() {
    free(_ -> true);
  }

  private void free(Predicate<Kept<M>> chosen) {
    List<Kept<M>> freed;
    synchronized (this) {
      freed = all.stream().filter(chosen).toList();
      freed.forEach(this::remove);
    }
    release(freed);
  }

  private boolean look() {
    if (mostBytes.getAsLong() < bytes()) {
      free();
    }
    long now = System.nanoTime();
    free(kept -> now - kept.sinceNanos() > keptNanos);
    return bytes() > 0;
  }

  synchronized long bytes() {
    return bytes;
  }
}
