package dev.gantry.core.memory;

import java.util.Deque;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.Semaphore;

/// Pairs of pinned buffers for readers that stage, kept from load to load: pinning memory costs
/// more than filling it.
///
/// Bounded: at most `mostPairs` exist at once, and who wants one more waits. A reader takes a whole
/// pair or nothing, so readers cannot block one another for good. Thread-safe.
public final class StagingPool implements AutoCloseable {
  /// Two buffers: one fills while the other empties.
  public record Pair(PinnedSlab first, PinnedSlab second) {
    void free() {
      Slab.releaseAll(List.of(first, second));
    }
  }

  private final CudaContext context;
  private final Semaphore inUse;
  private final Deque<Pair> idle = new ConcurrentLinkedDeque<>();
  private volatile boolean closed;

  public StagingPool(CudaContext context, int mostPairs) {
    this.context = context;
    this.inUse = new Semaphore(mostPairs);
  }

  /// A pair of buffers of at least `bytes` each, for the caller alone until it is given back.
  public Pair take(long bytes) {
    inUse.acquireUninterruptibly();
    boolean taken = false;
    try {
      Pair pair = idle.poll();
      if (pair != null && pair.first().size() < bytes) {
        pair.free();
        pair = null;
      }
      if (pair == null) {
        // Only where none is idle, so there are never more pairs than readers.
        pair = allocate(bytes);
      }
      taken = true;
      return pair;
    } finally {
      if (!taken) {
        inUse.release();
      }
    }
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

  /// Gives a pair back; no copy from or into it may be under way.
  public void giveBack(Pair pair) {
    idle.push(pair);
    inUse.release();
    if (closed) {
      freeIdle();
    }
  }

  /// Makes room for another pair in place of one that is not given back, because a copy from or
  /// into it may still be under way: that one stays as it is for good.
  public void abandon() {
    inUse.release();
  }

  /// Frees the idle pairs; those in use are freed when they are given back.
  @Override
  public void close() {
    closed = true;
    freeIdle();
  }

  /// Frees the idle pairs. The next reader makes new ones.
  public void freeIdle() {
    for (Pair pair = idle.poll(); pair != null; pair = idle.poll()) {
      pair.free();
    }
  }
}
