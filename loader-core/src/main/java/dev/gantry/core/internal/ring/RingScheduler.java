// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Failure;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.ring.BatchWork.Piece;
import dev.gantry.core.internal.threads.WorkLock;
import dev.gantry.core.internal.threads.WorkerThreads;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.locks.Condition;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Decides which piece each reader does next and which batch the consumer gets. It has the lock of
/// the ring's batches and slots, and all state that the lock guards.
///
/// Readers sleep until there is work, and the consumer sleeps until the next batch is filled. Nothing slow is done
/// under the lock.
final class RingScheduler<T> {
  /// The next task of a reader.
  sealed interface Task<T> {
    /// Asks the source for the batch of this number.
    ///
    /// @param slot the batch's slot; null if none is free yet, see [RingScheduler#awaitSlot]
    record AskSource<T>(long number, @Nullable Slot slot) implements Task<T> {}

    record RunPiece<T>(BatchWork<T> batch, Piece piece) implements Task<T> {}
  }

  /// A failure that the consumer gets instead of the batch of this number and all batches after
  /// it.
  private record Failed(long number, Throwable reason) {}

  private static final String NEXT = "the next batch";

  private final WorkLock lock = new WorkLock();
  private final Condition work = lock.newCondition();
  private final Condition change = lock.newCondition();
  private final Condition slotFreed = lock.newCondition();

  /// The most batches that are planned before they have a slot.
  private final int mostWithoutSlot;

  private final RingStatistics.Counter counter;
  private final Deque<Slot> free;
  private final Set<Slot> out = new HashSet<>();

  /// The batches that are planned and that the consumer does not have yet, by number; only those
  /// before the failed batch.
  private final NavigableMap<Long, BatchWork<T>> begun = new TreeMap<>();

  private long asked;
  private long handedOver;
  private boolean asking;

  /// The number of plans that are being made while other readers may ask the source.
  private int planning;

  /// Whether batches may be planned before they have a slot: true if, while the last batch was
  /// planned, other readers could ask the source.
  private boolean ahead;

  /// How many batches were asked for without a slot and still have none: the batches from number
  /// `placed` on. Batches get slots in order; otherwise later batches might take all slots, and
  /// the consumer would wait forever for an earlier one.
  private int withoutSlot;

  private long placed;

  /// How many of the `withoutSlot` batches are planned and wait for a slot.
  private int waiting;

  /// The number of batches, once the source has ended; before that, the largest long.
  private long count = Long.MAX_VALUE;

  private boolean stalled;

  /// Whether the thread that asked for the last batch filled it at once, in less time than another thread takes to
  /// wake. The consumer then asks for the next batch itself, and readers go on sleeping.
  private boolean atOnce;

  private @Nullable Failed failed;
  private @Nullable Throwable end;
  private boolean closed;
  private int busy;

  /// @param mostWithoutSlot the most batches that are planned before they have a slot; less than the
  ///     number of readers, since a reader that waits for a slot does nothing else
  RingScheduler(List<Slot> slots, int mostWithoutSlot, RingStatistics.Counter counter) {
    this.mostWithoutSlot = mostWithoutSlot;
    this.free = new ArrayDeque<>(slots);
    this.counter = counter;
  }

  /// Waits for the calling reader's next task; null when the ring has ended.
  @Nullable Task<T> take() {
    try (var _ = lock.taken()) {
      while (!closed && end == null) {
        Task<T> task = next();
        if (task != null) {
          return task;
        }
        noteStall();
        work.awaitUninterruptibly();
      }
      return null;
    }
  }

  private @Nullable Task<T> next() {
    // The consumer waits for the first batch, so its pieces are done before others are planned.
    BatchWork<T> first = begun.get(0L);
    Task<T> early = first == null ? null : pieceOf(first);
    if (early != null) {
      return early;
    }
    if (mayAsk() && withoutSlot == 0 && !free.isEmpty()) {
      return ask();
    }
    if (mayAsk() && ahead && withoutSlot < mostWithoutSlot) {
      asking = true;
      withoutSlot++;
      return new Task.AskSource<>(asked++, null);
    }
    for (BatchWork<T> batch : begun.values()) {
      Task<T> piece = pieceOf(batch);
      if (piece != null) {
        return piece;
      }
    }
    return null;
  }

  private @Nullable Task<T> pieceOf(BatchWork<T> batch) {
    Piece piece = batch.take();
    return piece == null ? null : new Task.RunPiece<>(batch, piece);
  }

  private Task.AskSource<T> ask() {
    asking = true;
    placed++;
    return new Task.AskSource<>(asked++, free.remove());
  }

  /// Waits for the slot of a batch that was asked for without one; null if the ring ends first, or
  /// if this batch or one before it has failed.
  @Nullable Slot awaitSlot(long number) {
    try (var _ = lock.taken()) {
      waiting++;
      while (!isDropped(number) && (number != placed || free.isEmpty())) {
        slotFreed.awaitUninterruptibly();
      }
      waiting--;
      withoutSlot--;
      if (isDropped(number)) {
        return null;
      }
      placed++;
      slotFreed.signalAll();
      work.signal();
      return free.remove();
    }
  }

  private boolean isDropped(long number) {
    return closed || end != null || (failed != null && failed.number() <= number);
  }

  private boolean mayAsk() {
    return !asking && count == Long.MAX_VALUE && failed == null;
  }

  /// Counts a stall if readers have nothing to do because all slots are filled.
  private void noteStall() {
    if (!stalled
        && planning == waiting
        && mayAsk()
        && begun.values().stream().allMatch(BatchWork::isFilled)) {
      stalled = true;
      counter.addStall();
    }
  }

  /// Notes that the caller has asked the source and goes on to make the plan, so that other
  /// readers may ask the source now. They may not if the last batch was filled at once: the
  /// consumer then asks itself, and readers go on sleeping.
  ///
  /// @return whether other readers may ask the source now
  boolean endAsking() {
    try (var _ = lock.taken()) {
      if (atOnce) {
        return false;
      }
      asking = false;
      planning++;
      work.signal();
      return true;
    }
  }

  /// Notes that the caller has made the plan, or has failed to.
  ///
  /// @param shared what [#endAsking] returned
  private void endPlanning(boolean shared) {
    if (shared) {
      planning--;
    } else {
      asking = false;
    }
  }

  /// Notes that the source gave this batch's plan.
  ///
  /// @param shared what [#endAsking] returned; false if it was not called
  /// @param gatheredAtOnce whether the batch was filled while it was planned
  void begin(BatchWork<T> batch, boolean shared, boolean gatheredAtOnce) {
    try (var _ = lock.taken()) {
      endPlanning(shared);
      ahead = shared;
      atOnce = gatheredAtOnce;
      if (failed == null || batch.number() < failed.number()) {
        begun.put(batch.number(), batch);
      }
      if (!atOnce) {
        work.signalAll();
      }
    }
  }

  /// Notes that the source ended before the batch of this number.
  void exhaust(long number, @Nullable Slot slot) {
    try (var _ = lock.taken()) {
      asking = false;
      count = number;
      if (slot != null) {
        free.add(slot);
      }
      change.signalAll();
    }
  }

  /// Fails this batch because asking the source or making the plan failed.
  ///
  /// @param shared what [#endAsking] returned; false if it was not called
  void failAsking(long number, boolean shared, Throwable reason) {
    try (var _ = lock.taken()) {
      endPlanning(shared);
      fail(number, reason);
    }
  }

  /// Drops this batch and all batches after it; the consumer still gets the batches before it.
  void fail(long number, Throwable reason) {
    try (var _ = lock.taken()) {
      if (failed == null || number < failed.number()) {
        failed = new Failed(number, reason);
        begun.tailMap(number, true).clear();
        change.signalAll();
        slotFreed.signalAll();
      }
    }
  }

  /// Notes that a piece of the batch is done.
  ///
  /// @return whether all pieces of the batch's phase are done
  boolean isLastDone(BatchWork<T> batch) {
    try (var _ = lock.taken()) {
      return batch.isLastDone();
    }
  }

  /// Gives readers the pieces of the batch's next phase.
  void goOn(BatchWork<T> batch, List<Piece> next) {
    try (var _ = lock.taken()) {
      batch.replace(next);
      work.signalAll();
    }
  }

  /// Notes that only the device has work left for this batch.
  void filled(BatchWork<T> batch) {
    try (var _ = lock.taken()) {
      batch.setFilled();
      change.signalAll();
    }
  }

  /// Waits for the next batch in order; null at the end. The caller then counts as busy with the ring until it calls
  /// [#leave].
  ///
  /// @param asker asks the source on this thread, which saves waking a reader
  @Nullable BatchWork<T> awaitNext(Consumer<Task.AskSource<T>> asker) {
    try (var _ = lock.taken()) {
      while (true) {
        checkOpen();
        BatchWork<T> batch = begun.get(handedOver);
        if (batch != null && batch.isFilled()) {
          begun.remove(handedOver);
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
      throw ended(WorkerThreads.interrupted("prefetch", NEXT));
    }
  }

  private boolean mayAskAtOnce() {
    return atOnce && begun.isEmpty() && withoutSlot == 0 && mayAsk() && !free.isEmpty();
  }

  /// Runs `asker` outside the lock. The caller holds the lock, and holds it again when this
  /// returns.
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

  /// Whether the next batch is filled, or the consumer can have it filled at once on its own
  /// thread.
  boolean hasNext() {
    try (var _ = lock.taken()) {
      BatchWork<T> batch = begun.get(handedOver);
      return batch == null ? mayAskAtOnce() : batch.isFilled();
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new MisuseException("no more batches: the dataset or its session is closed");
    }
    if (end != null) {
      throw ended(end);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw ended(WorkerThreads.interrupted("prefetch", NEXT));
    }
  }

  /// Ends the ring: the consumer gets `reason` from now on.
  void end(Throwable reason) {
    try (var _ = lock.taken()) {
      if (end == null) {
        end = reason;
      }
      wakeAll();
    }
  }

  private void wakeAll() {
    work.signalAll();
    change.signalAll();
    slotFreed.signalAll();
  }

  /// Ends the ring if it has not ended, and returns the exception that ended it.
  private RuntimeException ended(Throwable reason) {
    end(reason);
    return switch (end) {
      case RuntimeException e -> e;
      case Error e -> throw e;
      case null, default -> new IllegalStateException("a reader failed", end);
    };
  }

  static TransferException cancelled() {
    return new TransferException("prefetch", NEXT, new Failure.Cancelled());
  }

  /// Marks the caller as busy with one of the consumer's slots, until [#giveBack].
  ///
  /// @return whether the ring is open; if not, the caller owns the slot's memory
  boolean enter() {
    try (var _ = lock.taken()) {
      busy += closed ? 0 : 1;
      return !closed;
    }
  }

  void leave() {
    try (var _ = lock.taken()) {
      busy--;
      change.signalAll();
    }
  }

  /// Takes a slot back from the consumer. The caller no longer counts as busy with the slot then.
  ///
  /// @param usable whether the slot may be filled again
  void giveBack(Slot slot, boolean usable) {
    try (var _ = lock.taken()) {
      out.remove(slot);
      if (usable) {
        free.add(slot);
      }
      stalled = false;
      if (waiting > 0) {
        slotFreed.signalAll();
      } else if (!atOnce) {
        work.signal();
      }
      leave();
    }
  }

  /// Refuses all calls from now on; callers that are busy may still finish.
  ///
  /// @return whether this was the first call
  boolean close() {
    try (var _ = lock.taken()) {
      boolean first = !closed;
      closed = true;
      wakeAll();
      return first;
    }
  }

  /// Waits until no caller is busy with the ring. From then on, the consumer owns the memory of
  /// the slots whose batches it has.
  void awaitIdle() {
    try (var _ = lock.taken()) {
      while (busy > 0) {
        change.awaitUninterruptibly();
      }
    }
  }

  /// Whether the consumer has this slot's batch.
  boolean isOut(Slot slot) {
    try (var _ = lock.taken()) {
      return out.contains(slot);
    }
  }
}
