// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.PinnedSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.threads.WorkLock;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.Condition;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Pairs of pinned buffers for threads that stage: a thread reads files into the buffers, and the
/// device copies from them.
///
/// At most `maxPairs` pairs exist at once, with at most `maxBytes` together (a single pair may be
/// larger). A thread waits if one more pair would exceed these limits. Each load or save has a
/// [Share] of the pairs. A free pair goes to the waiting share that has the fewest pairs, and a
/// share that has at least two pairs more than a waiting share is asked to give one back. Thus
/// every load gets a pair within the time of a request, as long as there are no more loads than
/// pairs. Thread-safe.
public final class StagingPool {
  /// Two buffers: a thread reads into one while the device copies from the other.
  public record Pair(PinnedSlab first, PinnedSlab second) {
    void free() {
      try {
        first.release();
      } finally {
        second.release();
      }
    }
  }

  private static final class Waiter {
    private final Share share;
    private final long pairBytes;

    /// The condition that wakes this waiter alone, since concurrent loads may have a hundred
    /// waiters.
    private final Condition told;

    private boolean served;

    /// Whether the waiter must evaluate again whether it still wants a pair.
    private boolean again;

    Waiter(Share share, long pairBytes, Condition told) {
      this.share = share;
      this.pairBytes = pairBytes;
      this.told = told;
    }
  }

  private final CudaContext context;
  private final int maxPairs;
  private final long maxBytes;

  /// The threads that wait, in order of arrival. As soon as the limits allow another pair, the
  /// waiter that [#next] returns is served.
  private final List<Waiter> waiters = new ArrayList<>();

  private int pairsInUse;
  private long bytesInUse;

  private final WorkLock lock = new WorkLock();

  public StagingPool(CudaContext context, int maxPairs, long maxBytes) {
    this.context = context;
    this.maxPairs = maxPairs;
    this.maxBytes = maxBytes;
  }

  /// Makes the share of one load or save.
  public Share share() {
    return new Share();
  }

  /// The most bytes of pairs that `threads` threads take at once.
  ///
  /// @param bufferBytes the size of each of their buffers
  public long mostBytes(int threads, long bufferBytes) {
    long pairBytes = Math.multiplyExact(2, bufferBytes);
    long pairs = Math.min(Math.min(threads, maxPairs), Math.max(1, maxBytes / pairBytes));
    return pairs * pairBytes;
  }

  /// How many threads wait for a pair right now.
  public int waiting() {
    try (var _ = lock.taken()) {
      return (int) waiters.stream().filter(waiter -> !waiter.served).count();
    }
  }

  /// The pairs of one load or save. Thread-safe.
  public final class Share {
    private int held;

    /// The size in bytes of the pair that [#awaitTurn] reserved and no thread has taken yet; 0 if
    /// none is reserved.
    private long turnBytes;

    private Share() {}

    /// Waits until a pair is free for this share, and reserves it for the next [#take], which then
    /// does not wait. A load calls this before it allocates memory for tensors.
    ///
    /// @param bytes the size of each buffer, as in [#take]
    /// @param wanted as in [#take]
    /// @return false if the caller would have to wait and `wanted` is false
    /// @throws TransferException if the caller is interrupted while it waits
    public boolean awaitTurn(long bytes, BooleanSupplier wanted) {
      long pairBytes = Math.multiplyExact(2, bytes);
      boolean entered = enter(this, pairBytes, wanted);
      if (entered) {
        try (var _ = lock.taken()) {
          turnBytes = pairBytes;
        }
      }
      return entered;
    }

    /// Ends the reservation of [#awaitTurn] if no thread has taken the pair.
    public void endTurn() {
      long left = takeTurn();
      if (left > 0) {
        leave(this, left);
      }
    }

    private long takeTurn() {
      try (var _ = lock.taken()) {
        long taken = turnBytes;
        turnBytes = 0;
        return taken;
      }
    }

    /// Takes a pair of buffers of at least `bytes` each, which only the caller uses until it gives it back.
    ///
    /// @param wanted whether to wait if no pair is free. The caller's thread evaluates it outside
    ///     the pool's lock, and again after each [#wake]
    /// @return null if the caller would have to wait and `wanted` is false
    /// @throws TransferException if the driver cannot pin that much, or the caller is interrupted
    ///     while it waits
    public @Nullable Pair take(long bytes, BooleanSupplier wanted) {
      return take(bytes, wanted, pair -> pair);
    }

    /// Does the same as [#take(long, BooleanSupplier)], and makes the pair's user. The pair is given back if that fails.
    public <T> @Nullable T take(long bytes, BooleanSupplier wanted, Function<Pair, T> user) {
      long pairBytes = Math.multiplyExact(2, bytes);
      Supplier<T> make = () -> Cleanup.orUndo(() -> allocate(bytes), user, Pair::free);
      Runnable leave = () -> leave(this, pairBytes);
      if (takeTurn() == 0 && !enter(this, pairBytes, wanted)) {
        return null;
      }
      return Cleanup.orUndo(make, leave);
    }

    /// Makes threads that wait for a pair of this share evaluate `wanted` again.
    public void wake() {
      try (var _ = lock.taken()) {
        for (Waiter waiter : waiters) {
          if (waiter.share == this) {
            waiter.again = true;
            waiter.told.signal();
          }
        }
      }
    }

    /// Whether this share should give a pair back soon, because the next waiting share has at
    /// least two pairs fewer.
    public boolean shouldGiveOneBack() {
      try (var _ = lock.taken()) {
        return next().filter(waiter -> waiter.share.held + 2 <= held).isPresent();
      }
    }

    /// Does `work` with a pair, then gives the pair back. If the work fails and waiting for the
    /// device fails, too, the pair is abandoned.
    ///
    /// @param wanted as for [#take]; does nothing where that gives no pair
    /// @param device copies from and into the pair
    public void use(
        long bytes, BooleanSupplier wanted, CudaContext device, Consumer<? super Pair> work) {
      Consumer<Pair> undo =
          pair -> {
            if (device.comesToRest()) {
              giveBack(pair);
            } else {
              abandon(pair);
            }
          };
      Pair pair = take(bytes, wanted);
      if (pair == null) {
        return;
      }
      try {
        work.accept(pair);
      } catch (Throwable failure) {
        Cleanup.after(failure, undo, pair);
        throw failure;
      }
      giveBack(pair);
    }

    /// Gives a pair back. No copy from or into it may be running.
    public void giveBack(Pair pair) {
      try {
        pair.free();
      } finally {
        abandon(pair);
      }
    }

    /// Gives up a pair because a copy from or into it may still be running. Its memory stays
    /// allocated for good but no longer counts, so a new pair may be allocated instead.
    public void abandon(Pair pair) {
      leave(this, 2 * pair.first().size());
    }
  }

  /// @return whether the caller may have a pair now
  private boolean enter(Share share, long pairBytes, BooleanSupplier wanted) {
    Waiter waiter = new Waiter(share, pairBytes, lock.newCondition());
    if (arrive(waiter)) {
      return true;
    }
    TimedEvent event = TimedEvent.begun(EventKind.WAIT);
    boolean taken = false;
    try {
      boolean wants = wanted.getAsBoolean();
      boolean waited = wants;
      boolean served = false;
      while (wants && !served) {
        served = isServed(waiter);
        wants = wanted.getAsBoolean();
      }
      taken = wants && served;
      if (waited) {
        event.done("buffers");
      }
      return taken;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw WorkerThreads.interrupted("wait", "a staging buffer");
    } finally {
      depart(waiter, taken);
    }
  }

  /// @return whether the waiter gets a pair at once; if not, it is in the list of waiters now
  private boolean arrive(Waiter waiter) {
    try (var _ = lock.taken()) {
      waiter.served = next().isEmpty() && hasRoom(waiter.pairBytes);
      if (waiter.served) {
        count(waiter);
      } else {
        waiters.add(waiter);
      }
      return waiter.served;
    }
  }

  /// Waits until the waiter is served, or must evaluate `wanted` again.
  private boolean isServed(Waiter waiter) throws InterruptedException {
    try (var _ = lock.taken()) {
      while (!waiter.served && !waiter.again) {
        waiter.told.await();
      }
      waiter.again = false;
      return waiter.served;
    }
  }

  private void depart(Waiter waiter, boolean taken) {
    try (var _ = lock.taken()) {
      waiters.remove(waiter);
      if (waiter.served && !taken) {
        leave(waiter.share, waiter.pairBytes);
      } else {
        // Waiters behind this thread may need smaller pairs, which are free already.
        serve();
      }
    }
  }

  private boolean hasRoom(long pairBytes) {
    return pairsInUse == 0 || (pairsInUse < maxPairs && pairBytes <= maxBytes - bytesInUse);
  }

  private void count(Waiter served) {
    served.share.held++;
    pairsInUse++;
    bytesInUse += served.pairBytes;
  }

  private void leave(Share share, long pairBytes) {
    try (var _ = lock.taken()) {
      share.held--;
      pairsInUse--;
      bytesInUse -= pairBytes;
      serve();
    }
  }

  /// Serves waiting threads as long as the limits allow another pair. A waiter for a small pair
  /// never overtakes the next waiter, which would otherwise wait forever if it needs a larger
  /// pair.
  private void serve() {
    Optional<Waiter> next = next();
    while (next.isPresent() && hasRoom(next.get().pairBytes)) {
      Waiter waiter = next.get();
      waiter.served = true;
      count(waiter);
      waiter.told.signal();
      next = next();
    }
  }

  /// The waiter that gets the next pair: the first waiter of the share that holds the fewest
  /// pairs.
  private Optional<Waiter> next() {
    return waiters.stream()
        .filter(waiter -> !waiter.served)
        .min(Comparator.comparingInt(waiter -> waiter.share.held));
  }

  private Pair allocate(long bytes) {
    return Cleanup.orUndo(
        () -> PinnedSlab.allocate(context, bytes),
        first ->
            Cleanup.orUndo(
                () -> PinnedSlab.allocate(context, bytes),
                second -> new Pair(first, second),
                Slab::release),
        Slab::release);
  }
}
