// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.ring.BatchWork.Piece;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Decides which piece each reader does next and which batch the consumer gets: the ring's one lock,
/// and all that it guards.
///
/// Readers sleep until there is work, the consumer until the next batch is filled. Nothing slow is
/// done under the lock.
final class RingScheduler<T> {
  /// What a reader does next.
  sealed interface Task<T> {
    /// Asks the source for the batch of this number.
    record AskSource<T>(long number, Slot slot) implements Task<T> {}

    record RunPiece<T>(BatchWork<T> batch, Piece piece) implements Task<T> {}
  }

  /// Thrown in place of the batch of this number, and of all after it.
  private record Failed(long number, Throwable reason) {}

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  private final Condition change = lock.newCondition();
  private final RingStatistics.Counter counter;
  private final Deque<Slot> free;
  private final Set<Slot> out = new HashSet<>();

  /// Planned and not handed over, by number; none from the failed one on.
  private final NavigableMap<Long, BatchWork<T>> ahead = new TreeMap<>();

  private long asked;
  private long handedOver;
  private boolean asking;

  /// Plans that are made while others ask.
  private int planning;

  /// How many batches there are, once that is known.
  private long count = Long.MAX_VALUE;

  private boolean stalled;

  /// Whether the last batch was filled by the one who asked for it, in less time than a reader takes to
  /// wake: then the consumer asks for the next one itself, and readers are left to sleep.
  private boolean atOnce;

  private @Nullable Failed failed;
  private @Nullable Throwable end;
  private boolean closed;
  private int busy;

  RingScheduler(List<Slot> slots, RingStatistics.Counter counter) {
    this.free = new ArrayDeque<>(slots);
    this.counter = counter;
  }

  private void locked(Runnable change) {
    lock.lock();
    try {
      change.run();
    } finally {
      lock.unlock();
    }
  }

  /// Waits for the calling reader's next task; null when the ring has ended.
  @Nullable Task<T> take() {
    lock.lock();
    try {
      while (!closed && end == null) {
        Task<T> task = next();
        if (task != null) {
          return task;
        }
        noteStall();
        work.awaitUninterruptibly();
      }
      return null;
    } finally {
      lock.unlock();
    }
  }

  private @Nullable Task<T> next() {
    if (mayAsk() && !free.isEmpty()) {
      return ask();
    }
    for (BatchWork<T> batch : ahead.values()) {
      Piece piece = batch.take();
      if (piece != null) {
        return new Task.RunPiece<>(batch, piece);
      }
    }
    return null;
  }

  private Task.AskSource<T> ask() {
    asking = true;
    return new Task.AskSource<>(asked++, free.remove());
  }

  private boolean mayAsk() {
    return !asking && count == Long.MAX_VALUE && failed == null;
  }

  /// Counts a stall if all slots are filled.
  private void noteStall() {
    if (!stalled
        && planning == 0
        && mayAsk()
        && ahead.values().stream().allMatch(BatchWork::isFilled)) {
      stalled = true;
      counter.addStall();
    }
  }

  /// The caller asked the source, and goes on to make the plan: others may ask now. Not where the consumer
  /// asks, since readers are left to sleep then.
  ///
  /// @return whether others may
  boolean endAsking() {
    lock.lock();
    try {
      if (atOnce) {
        return false;
      }
      asking = false;
      planning++;
      work.signal();
      return true;
    } finally {
      lock.unlock();
    }
  }

  /// The plan was made, or will not be.
  ///
  /// @param shared what [#endAsking] said
  private void endPlanning(boolean shared) {
    if (shared) {
      planning--;
    } else {
      asking = false;
    }
  }

  /// The source gave this batch's plan.
  ///
  /// @param shared what [#endAsking] said; false if it was not called
  /// @param gatheredAtOnce whether the batch was filled with it
  void begin(BatchWork<T> batch, boolean shared, boolean gatheredAtOnce) {
    locked(() -> {
      endPlanning(shared);
      atOnce = gatheredAtOnce;
      if (failed == null || batch.number() < failed.number()) {
        ahead.put(batch.number(), batch);
      }
      if (!atOnce) {
        work.signalAll();
      }
    });
  }

  /// The source has no more batches: this is the number of the one that it does not have.
  void exhaust(long number, Slot slot) {
    locked(() -> {
      asking = false;
      count = number;
      free.add(slot);
      change.signalAll();
    });
  }

  /// Asking for this batch failed, or planning it.
  ///
  /// @param shared what [#endAsking] said; false if it was not called
  void failAsking(long number, boolean shared, Throwable reason) {
    locked(() -> {
      endPlanning(shared);
      fail(number, reason);
    });
  }

  /// Drops this batch and all after it; those before it are still handed over.
  void fail(long number, Throwable reason) {
    locked(() -> {
      if (failed == null || number < failed.number()) {
        failed = new Failed(number, reason);
        ahead.tailMap(number, true).clear();
        change.signalAll();
      }
    });
  }

  /// A piece of the batch is done.
  ///
  /// @return whether it was the last for now
  boolean isLastDone(BatchWork<T> batch) {
    lock.lock();
    try {
      return batch.isLastDone();
    } finally {
      lock.unlock();
    }
  }

  /// More is left to do before the batch is filled.
  void goOn(BatchWork<T> batch, List<Piece> next) {
    locked(() -> {
      batch.replace(next);
      work.signalAll();
    });
  }

  /// Only the device has work left for this batch.
  void filled(BatchWork<T> batch) {
    locked(() -> {
      batch.setFilled();
      change.signalAll();
    });
  }

  /// Waits for the next batch in order; null at the end. The caller then is busy with the ring until
  /// [#leave].
  ///
  /// @param asker does on this thread what a reader would have to be woken for
  @Nullable BatchWork<T> awaitNext(Consumer<Task.AskSource<T>> asker) {
    lock.lock();
    try {
      while (true) {
        checkOpen();
        BatchWork<T> batch = ahead.get(handedOver);
        if (batch != null && batch.isFilled()) {
          ahead.remove(handedOver);
          handedOver++;
          out.add(batch.slot());
          busy++;
          return batch;
        }
        if (failed != null && failed.number() == handedOver) {
          throw ended(failed.reason());
        }
        if (handedOver == count) {
          return null;
        }
        if (mayAskAtOnce()) {
          fill(asker);
        } else {
          change.await();
        }
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw ended(cancelled());
    } finally {
      lock.unlock();
    }
  }

  private boolean mayAskAtOnce() {
    return atOnce && ahead.isEmpty() && mayAsk() && !free.isEmpty();
  }

  /// The lock is held, but not while `asker` runs.
  private void fill(Consumer<Task.AskSource<T>> asker) {
    Task.AskSource<T> task = ask();
    busy++;
    lock.unlock();
    try {
      asker.accept(task);
    } finally {
      lock.lock();
      busy--;
      change.signalAll();
    }
  }

  /// Whether the caller need not wait for the next batch.
  boolean hasNext() {
    lock.lock();
    try {
      BatchWork<T> batch = ahead.get(handedOver);
      return batch == null ? mayAskAtOnce() : batch.isFilled();
    } finally {
      lock.unlock();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new MisuseException("this ring is closed");
    }
    if (end != null) {
      throw ended(end);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw ended(cancelled());
    }
  }

  /// Ends the ring: the consumer gets this exception from now on.
  void end(Throwable reason) {
    locked(() -> {
      if (end == null) {
        end = reason;
      }
      work.signalAll();
      change.signalAll();
    });
  }

  /// Ends the ring unless it has ended, and gives the exception that ended it.
  private RuntimeException ended(Throwable reason) {
    end(reason);
    return switch (end) {
      case RuntimeException e -> e;
      case Error e -> throw e;
      case null, default -> new IllegalStateException("a reader failed", end);
    };
  }

  static TransferException cancelled() {
    return new TransferException("prefetch", "by the caller", new Failure.Cancelled());
  }

  /// The caller is busy with one of the consumer's slots, until [#giveBack].
  ///
  /// @return whether the ring is open; if not, the caller owns the slot's memory
  boolean enter() {
    lock.lock();
    try {
      busy += closed ? 0 : 1;
      return !closed;
    } finally {
      lock.unlock();
    }
  }

  void leave() {
    locked(() -> {
      busy--;
      change.signalAll();
    });
  }

  /// Takes a slot back from the consumer; the caller is no longer busy with it.
  ///
  /// @param usable whether it may be filled again
  void giveBack(Slot slot, boolean usable) {
    locked(() -> {
      out.remove(slot);
      if (usable) {
        free.add(slot);
      }
      stalled = false;
      if (!atOnce) {
        work.signal();
      }
      leave();
    });
  }

  /// Refuses all calls from now on; callers that are busy may still finish.
  ///
  /// @return whether this was the first call
  boolean close() {
    lock.lock();
    try {
      boolean first = !closed;
      closed = true;
      work.signalAll();
      change.signalAll();
      return first;
    } finally {
      lock.unlock();
    }
  }

  /// Waits until no caller is busy with the ring.
  ///
  /// @return the slots that the consumer still has, which owns their memory from now on
  Set<Slot> awaitIdle() {
    lock.lock();
    try {
      while (busy > 0) {
        change.awaitUninterruptibly();
      }
      return Set.copyOf(out);
    } finally {
      lock.unlock();
    }
  }
}
