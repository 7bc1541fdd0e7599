package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Pairs of pinned buffers for readers that stage, kept from load to load: pinning memory costs
/// more than filling it.
///
/// Bounded: at most `mostPairs` exist at once, and a thread that needs one more waits. Each load or
/// save has a [Share]; a pair that comes free goes to the smallest share that waits, and a share
/// that is larger by two pairs or more than one that waits is asked to give one back. So every load
/// gets a pair after a request's time, as long as there are no more loads than pairs. Thread-safe.
public final class StagingPool implements AutoCloseable {
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
  private final Deque<Pair> idle = new ArrayDeque<>();

  /// In the order of their coming; unless all pairs are in use, every one of them is served.
  private final List<Waiter> waiters = new ArrayList<>();

  private int inUse;
  private boolean closed;

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

  /// What one load or save has of the pool. Thread-safe.
  public final class Share {
    private int held;

    private Share() {}

    public StagingPool pool() {
      return StagingPool.this;
    }

    /// A pair of buffers of at least `bytes` each, for the caller alone until it is given back.
    ///
    /// @param wanted whether to wait for it where others have all pairs; asked again on each
    ///     [#wake] and by those who give one back, under the pool's lock
    /// @return null where the caller would wait and does not want to
    /// @throws TransferException if the driver cannot pin that much, or the caller is interrupted
    ///     while it waits
    public @Nullable Pair take(long bytes, BooleanSupplier wanted) {
      if (!enter(this, wanted)) {
        return null;
      }
      boolean taken = false;
      try {
        Pair pair = idleOrNew(bytes);
        taken = true;
        return pair;
      } finally {
        if (!taken) {
          abandon();
        }
      }
    }

    /// Has those who wait for a pair of this share ask again whether they want it.
    public void wake() {
      synchronized (StagingPool.this) {
        StagingPool.this.notifyAll();
      }
    }

    /// Whether a pair is to be given back soon, for a load that has fewer and waits.
    public boolean owesOne() {
      synchronized (StagingPool.this) {
        return next().filter(waiter -> waiter.share.held + 2 <= held).isPresent();
      }
    }

    /// Gives a pair back; no copy from or into it may be under way.
    public void giveBack(Pair pair) {
      StagingPool.this.giveBack(pair, this);
    }

    /// Makes room for another pair in place of one that is not given back, because a copy from or
    /// into it may still be under way: that one stays as it is for good.
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
    try {
      while (waiter.waits()) {
        wait();
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

  /// Who gets the next pair: of the smallest shares that wait, the one that came first.
  private Optional<Waiter> next() {
    return waiters.stream()
        .filter(Waiter::waits)
        .min(Comparator.comparingInt(waiter -> waiter.share.held));
  }

  private Pair idleOrNew(long bytes) {
    Pair pair = takeIdle();
    if (pair != null && pair.first().size() >= bytes) {
      return pair;
    }
    if (pair != null) {
      pair.free();
    }
    // Only where none is idle, so there are never more pairs than readers.
    return allocate(bytes);
  }

  private synchronized @Nullable Pair takeIdle() {
    return idle.poll();
  }

  private Pair allocate(long bytes) {
    PinnedSlab first = PinnedSlab.allocate(context, bytes);
    boolean complete = false;
    try {
      Pair pair = new Pair(first, PinnedSlab.allocate(context, bytes));
      complete = true;
      return pair;
    } finally {
      if (!complete) {
        first.release();
      }
    }
  }

  private void giveBack(Pair pair, Share share) {
    boolean free;
    synchronized (this) {
      free = closed;
      if (!free) {
        idle.push(pair);
      }
      leave(share);
    }
    if (free) {
      pair.free();
    }
  }

  /// Frees the idle pairs; those in use are freed when they are given back.
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    freeIdle();
  }

  /// Frees the idle pairs. The next reader makes new ones.
  public void freeIdle() {
    List<Pair> freed;
    synchronized (this) {
      freed = List.copyOf(idle);
      idle.clear();
    }
    Cleanup.runAll(freed.stream().<Runnable>map(pair -> pair::free).toList());
  }
}
