// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.WaitEvent;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Pairs of pinned buffers for threads that stage.
///
/// At most `mostPairs` exist at once; a thread that needs another waits. Each load or save has a
/// [Share]. A pair that becomes free goes to the smallest share that waits, and a share that has two
/// pairs or more than a waiting one is asked to give one back. So every load gets a pair within a
/// request's time, as long as there are no more loads than pairs. Thread-safe.
public final class StagingPool {
  /// Two buffers: one fills while the other empties.
  public record Pair(PinnedSlab first, PinnedSlab second) {
    void free() {
      Slab.releaseAll(List.of(first, second));
    }
  }

  private static final class Waiter {
    private final Share share;
    private final BooleanSupplier wanted;
    private boolean served;

    Waiter(Share share, BooleanSupplier wanted) {
      this.share = share;
      this.wanted = wanted;
    }

    boolean waits() {
      return !served && wanted.getAsBoolean();
    }
  }

  private final CudaContext context;
  private final int mostPairs;

  /// In order of arrival. Empty of unserved waiters unless all pairs are in use.
  private final List<Waiter> waiters = new ArrayList<>();

  private int inUse;

  public StagingPool(CudaContext context, int mostPairs) {
    this.context = context;
    this.mostPairs = mostPairs;
  }

  /// For one load or save.
  public Share share() {
    return new Share();
  }

  /// How many threads wait for a pair right now.
  public synchronized int waiting() {
    return (int) waiters.stream().filter(Waiter::waits).count();
  }

  /// The pairs that one load or save has. Thread-safe.
  public final class Share {
    private int held;

    private Share() {}

    public StagingPool pool() {
      return StagingPool.this;
    }

    /// A pair of buffers of at least `bytes` each, which only the caller uses until it gives it back.
    ///
    /// @param wanted whether to wait if all pairs are in use; evaluated again after each [#wake] and
    ///     whenever a pair is given back, under the pool's lock
    /// @return null if the caller would have to wait and `wanted` is false
    /// @throws TransferException if the driver cannot pin that much, or the caller is interrupted
    ///     while it waits
    public @Nullable Pair take(long bytes, BooleanSupplier wanted) {
      if (!enter(this, wanted)) {
        return null;
      }
      return Cleanup.orUndo(() -> allocate(bytes), this::abandon);
    }

    /// Makes waiting threads evaluate `wanted` again.
    public void wake() {
      synchronized (StagingPool.this) {
        StagingPool.this.notifyAll();
      }
    }

    /// Whether to give a pair back soon, for another load that waits and has fewer.
    public boolean owesOne() {
      synchronized (StagingPool.this) {
        return next().filter(waiter -> waiter.share.held + 2 <= held).isPresent();
      }
    }

    /// Gives a pair back; no copy from or into it may be running.
    public void giveBack(Pair pair) {
      Cleanup.runAll(List.of(pair::free, this::abandon));
    }

    /// Gives up a pair because a copy from or into it may still be running. Its memory stays allocated
    /// for good, and another pair may take its place.
    public void abandon() {
      leave(this);
    }
  }

  /// @return whether the caller may have one of the pairs now
  private synchronized boolean enter(Share share, BooleanSupplier wanted) {
    if (inUse < mostPairs) {
      inUse++;
      share.held++;
      return true;
    }
    Waiter waiter = new Waiter(share, wanted);
    waiters.add(waiter);
    WaitEvent event = new WaitEvent();
    event.begin();
    try {
      boolean waited = waiter.waits();
      while (waiter.waits()) {
        wait();
      }
      if (waited) {
        event.done(WaitEvent.Reason.BUFFERS);
      }
      return waiter.served;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      if (waiter.served) {
        leave(share);
      }
      throw new TransferException("wait for a buffer", "by the caller", new Failure.Cancelled());
    } finally {
      waiters.remove(waiter);
    }
  }

  private synchronized void leave(Share share) {
    share.held--;
    inUse--;
    next()
        .ifPresent(waiter -> {
          waiter.served = true;
          waiter.share.held++;
          inUse++;
          notifyAll();
        });
  }

  /// The waiter that gets the next pair: the first of the smallest share.
  private Optional<Waiter> next() {
    return waiters.stream()
        .filter(Waiter::waits)
        .min(Comparator.comparingInt(waiter -> waiter.share.held));
  }

  private Pair allocate(long bytes) {
    PinnedSlab first = PinnedSlab.allocate(context, bytes);
    return Cleanup.orUndo(
        () -> new Pair(first, PinnedSlab.allocate(context, bytes)), first::release);
  }
}
