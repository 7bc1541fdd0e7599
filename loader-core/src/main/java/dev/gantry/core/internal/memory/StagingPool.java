// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Pairs of pinned buffers for threads that stage.
///
/// At most `maxPairs` exist at once, and of all of them at most `maxBytes`, or one pair whatever its
/// size; a thread that needs another waits. Each load or save has a [Share]. A pair that becomes free goes to the
/// smallest share that waits, and a share that has two pairs or more than a waiting one is asked to give one back. So
/// every load gets a pair within a request's time, as long as there are no more loads than pairs. Thread-safe.
public final class StagingPool {
  /// Two buffers: one fills while the other empties.
  public record Pair(PinnedSlab first, PinnedSlab second) {
    void free() {
      Slab.releaseAll(List.of(first, second));
    }
  }

  private static final class Waiter {
    private final Share share;
    private final long pairBytes;
    private boolean served;

    Waiter(Share share, long pairBytes) {
      this.share = share;
      this.pairBytes = pairBytes;
    }
  }

  private final CudaContext context;
  private final int maxPairs;
  private final long maxBytes;

  /// In order of arrival. Empty of unserved waiters unless there is no room for the next.
  private final List<Waiter> waiters = new ArrayList<>();

  private int pairsInUse;
  private long bytesInUse;

  /// How often something changed for those who wait.
  private long changes;

  public StagingPool(CudaContext context, int maxPairs, long maxBytes) {
    this.context = context;
    this.maxPairs = maxPairs;
    this.maxBytes = maxBytes;
  }

  /// For one load or save.
  public Share share() {
    return new Share();
  }

  /// The most that so many threads take at once, in bytes.
  ///
  /// @param bufferBytes the size of each of their buffers
  public long mostBytes(int threads, long bufferBytes) {
    long pairBytes = Math.multiplyExact(2, bufferBytes);
    long pairs = Math.min(Math.min(threads, maxPairs), Math.max(1, maxBytes / pairBytes));
    return pairs * pairBytes;
  }

  /// How many threads wait for a pair right now.
  public synchronized int waiting() {
    return (int) waiters.stream().filter(waiter -> !waiter.served).count();
  }

  /// The pairs that one load or save has. Thread-safe.
  public final class Share {
    private int held;

    private Share() {}

    /// A pair of buffers of at least `bytes` each, which only the caller uses until it gives it back.
    ///
    /// @param wanted whether to wait if there is no room; evaluated again after each [#wake] and
    ///     whenever a pair is given back, by the caller's thread, which has no lock of the pool then
    /// @return null if the caller would have to wait and `wanted` is false
    /// @throws TransferException if the driver cannot pin that much, or the caller is interrupted
    ///     while it waits
    public @Nullable Pair take(long bytes, BooleanSupplier wanted) {
      long pairBytes = Math.multiplyExact(2, bytes);
      if (!enter(this, pairBytes, wanted)) {
        return null;
      }
      return Cleanup.orUndo(() -> allocate(bytes), () -> leave(this, pairBytes));
    }

    /// Makes waiting threads evaluate `wanted` again.
    public void wake() {
      StagingPool.this.changed();
    }

    /// Whether to give a pair back soon, for another load that waits and has fewer.
    public boolean owesOne() {
      synchronized (StagingPool.this) {
        return next().filter(waiter -> waiter.share.held + 2 <= held).isPresent();
      }
    }

    /// Works with a pair, then gives it back; abandons it if the work failed and a device does not say that its
    /// copies have ended.
    ///
    /// @param devices that copy from and into the pair
    public void use(Pair pair, Collection<CudaContext> devices, Runnable work) {
      Cleanup.orUndo(
          work,
          () -> {
            if (devices.stream().allMatch(CudaContext::comesToRest)) {
              giveBack(pair);
            } else {
              abandon(pair);
            }
          });
      giveBack(pair);
    }

    /// Gives a pair back; no copy from or into it may be running.
    public void giveBack(Pair pair) {
      Cleanup.runAll(List.of(pair::free, () -> abandon(pair)));
    }

    /// Gives up a pair because a copy from or into it may still be running. Its memory stays allocated
    /// for good, and another pair may take its place.
    public void abandon(Pair pair) {
      leave(this, 2 * pair.first().size());
    }
  }

  /// @return whether the caller may have a pair now
  private boolean enter(Share share, long pairBytes, BooleanSupplier wanted) {
    Waiter waiter = new Waiter(share, pairBytes);
    if (arrive(waiter)) {
      return true;
    }
    TimedEvent event = TimedEvent.begun(EventKind.WAIT);
    boolean taken = false;
    try {
      long seen = changes();
      boolean wants = wanted.getAsBoolean();
      boolean waited = wants;
      boolean served = false;
      while (wants && !served) {
        served = isServed(waiter, seen);
        seen = changes();
        wants = wanted.getAsBoolean();
      }
      taken = wants && served;
      if (waited) {
        event.done("buffers");
      }
      return taken;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw new TransferException("wait for a buffer", "by the caller", new Failure.Cancelled());
    } finally {
      depart(waiter, taken);
    }
  }

  /// @return whether there is room at once; else it waits from now on
  private synchronized boolean arrive(Waiter waiter) {
    waiter.served = next().isEmpty() && hasRoom(waiter.pairBytes);
    if (waiter.served) {
      count(waiter);
    } else {
      waiters.add(waiter);
    }
    return waiter.served;
  }

  /// Waits until the waiter is served, or something has changed since there were `seen` changes.
  private synchronized boolean isServed(Waiter waiter, long seen) throws InterruptedException {
    while (!waiter.served && changes == seen) {
      wait();
    }
    return waiter.served;
  }

  private synchronized void depart(Waiter waiter, boolean taken) {
    waiters.remove(waiter);
    if (waiter.served && !taken) {
      leave(waiter.share, waiter.pairBytes);
    } else {
      // It may have kept others waiting that need less.
      serve();
    }
  }

  private synchronized long changes() {
    return changes;
  }

  private synchronized void changed() {
    changes++;
    notifyAll();
  }

  private boolean hasRoom(long pairBytes) {
    return pairsInUse == 0 || (pairsInUse < maxPairs && pairBytes <= maxBytes - bytesInUse);
  }

  private void count(Waiter served) {
    served.share.held++;
    pairsInUse++;
    bytesInUse += served.pairBytes;
  }

  private synchronized void leave(Share share, long pairBytes) {
    share.held--;
    pairsInUse--;
    bytesInUse -= pairBytes;
    changed();
    serve();
  }

  /// A smaller pair does not overtake: a large one would wait for ever.
  private synchronized void serve() {
    Optional<Waiter> next = next();
    while (next.isPresent() && hasRoom(next.get().pairBytes)) {
      Waiter waiter = next.get();
      waiter.served = true;
      count(waiter);
      notifyAll();
      next = next();
    }
  }

  /// The waiter that gets the next pair: the first of the smallest share.
  private Optional<Waiter> next() {
    return waiters.stream()
        .filter(waiter -> !waiter.served)
        .min(Comparator.comparingInt(waiter -> waiter.share.held));
  }

  private Pair allocate(long bytes) {
    PinnedSlab first = PinnedSlab.allocate(context, bytes);
    return Cleanup.orUndo(
        () -> new Pair(first, PinnedSlab.allocate(context, bytes)), first::release);
  }
}
