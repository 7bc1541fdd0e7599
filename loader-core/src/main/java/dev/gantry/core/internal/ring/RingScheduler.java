package dev.gantry.core.internal.ring;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/// Who does what next, and which batch comes next: the ring's one lock, and all that it guards.
///
/// Readers sleep until there is work, the consumer until the next batch is there. Nothing that
/// takes long is done under the lock.
final class RingScheduler<T> {
  /// In place of the batch of this number, and of all after it.
  private record Failed(long number, Throwable reason) {}

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition work = lock.newCondition();
  private final Condition change = lock.newCondition();
  private final RingTally tally;
  private final Deque<Slot> free;
  private final Set<Slot> out = new HashSet<>();

  /// Asked for and not handed over, in order; none from the failed one on.
  private final Deque<BatchWork<T>> ahead = new ArrayDeque<>();

  private long asked;
  private boolean asking;
  private boolean exhausted;
  private boolean stalled;
  private @Nullable Failed failed;
  private @Nullable Throwable end;
  private boolean closed;
  private int busy;

  RingScheduler(List<Slot> slots, RingTally tally) {
    this.free = new ArrayDeque<>(slots);
    this.tally = tally;
  }

  private void locked(Runnable change) {
    lock.lock();
    try {
      change.run();
    } finally {
      lock.unlock();
    }
  }

  /// The calling reader's next task, for which it waits; null when there is nothing more to do.
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
      asking = true;
      return new Task.Ask<>(asked++, free.remove());
    }
    for (BatchWork<T> batch : ahead) {
      Item item = batch.take();
      if (item != null) {
        return new Task.Do<>(batch, item);
      }
    }
    return null;
  }

  private boolean mayAsk() {
    return !asking && !exhausted && failed == null;
  }

  /// All that may be done ahead is done.
  private void noteStall() {
    if (!stalled && mayAsk() && ahead.stream().allMatch(BatchWork::isFilled)) {
      stalled = true;
      tally.stall();
    }
  }

  /// The source gave a batch.
  void begin(BatchWork<T> batch) {
    locked(() -> {
      asking = false;
      if (failed == null) {
        ahead.add(batch);
      }
      work.signalAll();
    });
  }

  /// The source has no more batches.
  void exhaust(Slot slot) {
    locked(() -> {
      asking = false;
      exhausted = true;
      free.add(slot);
      change.signalAll();
    });
  }

  /// Asking for this batch failed.
  void failAsking(long number, Throwable reason) {
    locked(() -> {
      asking = false;
      fail(number, reason);
    });
  }

  /// What is left of this batch and of all after it is not done; those before it are.
  void fail(long number, Throwable reason) {
    locked(() -> {
      if (failed == null || number < failed.number()) {
        failed = new Failed(number, reason);
        ahead.removeIf(batch -> batch.number() >= number);
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

  /// There are copies to make before the batch is filled.
  void goOnCopying(BatchWork<T> batch, List<Item> copies) {
    locked(() -> {
      batch.goOnCopying(copies);
      work.signalAll();
    });
  }

  /// Nothing is left to do for this batch but for the device.
  void filled(BatchWork<T> batch) {
    locked(() -> {
      batch.setFilled();
      change.signalAll();
    });
  }

  /// The next batch in order, for which it waits; null at the end. The caller then is busy with the
  /// ring until [#leave].
  @Nullable BatchWork<T> awaitNext() {
    lock.lock();
    try {
      while (true) {
        checkOpen();
        BatchWork<T> batch = ahead.peek();
        if (batch != null && batch.isFilled()) {
          ahead.remove();
          out.add(batch.slot());
          busy++;
          return batch;
        }
        if (batch == null && failed != null) {
          throw ended(failed.reason());
        }
        if (batch == null && exhausted) {
          return null;
        }
        change.await();
      }
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      throw ended(cancelled());
    } finally {
      lock.unlock();
    }
  }

  /// Whether the next batch is there, so that nobody need wait for it on the host.
  boolean hasNext() {
    lock.lock();
    try {
      BatchWork<T> batch = ahead.peek();
      return batch != null && batch.isFilled();
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

  /// Ends the ring: this is thrown at whoever asks for a batch from now on.
  void end(Throwable reason) {
    locked(() -> {
      if (end == null) {
        end = reason;
      }
      work.signalAll();
      change.signalAll();
    });
  }

  /// What ended the ring, now or before.
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

  /// The caller is busy with a slot that the consumer has, until [#giveBack].
  ///
  /// @return whether the ring is open; if not, the slot's memory is the caller's
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

  /// The consumer has this slot no longer; the caller was busy with it, and is so no longer.
  ///
  /// @param usable whether it may be filled again
  void giveBack(Slot slot, boolean usable) {
    locked(() -> {
      out.remove(slot);
      if (usable) {
        free.add(slot);
      }
      stalled = false;
      work.signal();
      leave();
    });
  }

  /// Closes the ring for all but those who are busy with it.
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

  /// Waits until nobody is busy with the ring any more.
  ///
  /// @return the slots that the consumer still has, whose memory is the consumer's from now on
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
