// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.BatchWork.Piece;
import dev.gantry.core.internal.ring.RingScheduler.Task;
import dev.gantry.core.internal.transport.OnDemandTransfer;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The work of one thread that fills slots: it asks the source for plans, reads, runs host writers and copies.
///
/// A reader catches every exception, also checked ones that sources and writers in other languages
/// throw undeclared; otherwise the consumer would wait forever for a reader that has ended.
final class RingReader<T> implements Runnable {
  private final RingScheduler<T> scheduler;
  private final BatchPlanSource<T> source;
  private final RingOptions options;
  private final OnDemandTransfer transfer;

  /// Whether the last batch was gathered, which makes it likely that the next batch will be.
  /// Several readers plan at once and write this field, so it says nothing about a particular
  /// batch.
  private volatile boolean gathered;

  private volatile @Nullable Thread asker;

  RingReader(
      RingScheduler<T> scheduler,
      BatchPlanSource<T> source,
      RingOptions options,
      OnDemandTransfer transfer) {
    this.scheduler = scheduler;
    this.source = source;
    this.options = options;
    this.transfer = transfer;
    this.gathered = transfer.isReadyToGather();
  }

  @Override
  public void run() {
    try (OnDemandTransfer.Reader reader = transfer.openReader()) {
      for (Task<T> task = scheduler.take(); task != null; task = scheduler.take()) {
        switch (task) {
          case Task.AskSource<T>(long number, @Nullable Slot slot) -> askSource(number, slot);
          case Task.RunPiece<T>(BatchWork<T> batch, Piece piece) -> run(batch, piece, reader);
        }
      }
    } catch (Throwable e) {
      scheduler.end(e);
    }
  }

  /// Asks the source on the consumer's thread.
  void askSource(Task.AskSource<T> task) {
    asker = Thread.currentThread();
    try {
      askSource(task.number(), task.slot());
    } finally {
      asker = null;
    }
  }

  /// Whether the calling thread is the consumer's and is inside a call of the source.
  boolean isAsking() {
    return Thread.currentThread().equals(asker);
  }

  private void askSource(long number, @Nullable Slot given) {
    long start = System.nanoTime();
    boolean shared = false;
    BatchWork<T> batch;
    boolean atOnce;
    try {
      Supplier<BatchPlan<T>> planner = ask();
      if (planner == null) {
        scheduler.exhaust(number, given);
        return;
      }
      // If batches are gathered, several readers plan at the same time. The first batch is planned
      // alone, so that its kernel is queued before those of later batches.
      shared = gathered && number > 0 && scheduler.endAsking();
      BatchPlan<T> plan = planner.get();
      Slot slot = given == null ? scheduler.awaitSlot(number) : given;
      if (slot == null) {
        return;
      }
      batch = new BatchWork<>(number, slot, prepare(number, slot, plan), start);
      atOnce = slot.gatherAtOnce() && batch.isAllDone();
    } catch (Throwable e) {
      scheduler.failAsking(number, shared, e);
      return;
    }
    boolean nothingToDo = batch.isAllDone();
    scheduler.begin(batch, shared, atOnce);
    if (nothingToDo) {
      finish(batch);
    }
  }

  /// Asks the source for the next plan, or for the work that makes it; null after the source's
  /// last batch.
  private @Nullable Supplier<BatchPlan<T>> ask() {
    if (gathered) {
      return source.nextGathered().orElse(null);
    }
    BatchPlan<T> plan = source.next().orElse(null);
    return plan == null ? null : () -> plan;
  }

  private BatchPlan<T> prepare(long number, Slot slot, BatchPlan<T> plan) {
    requireFits(number, plan);
    // The slot gets its memory only when there is a plan: asking for a plan after the last batch
    // must not allocate memory.
    slot.allocateIfNeeded();
    Optional<Gathering> gathering = transfer.gathering(plan);
    gathered = gathering.isPresent();
    // This batch uses the local answer, since another reader may have changed the field by now.
    if (gathering.isPresent()) {
      slot.gather(gathering.get());
      return plan;
    }
    BatchPlan<T> byReads = plan.byReads();
    requireFits(number, byReads);
    return byReads;
  }

  private void requireFits(long number, BatchPlan<T> plan) {
    plan.requireFits(number, options.slotBytes(), options.requestBytes(), options.hostBytes());
  }

  private void run(BatchWork<T> batch, Piece piece, OnDemandTransfer.Reader reader) {
    try {
      switch (piece) {
        case Piece.Bring(Read read, Target target) ->
            reader.read(
                read,
                target,
                () -> done(batch),
                failure -> scheduler.fail(batch.number(), failure));
        case Piece.Work(Runnable work) -> {
          work.run();
          done(batch);
        }
      }
    } catch (Throwable e) {
      scheduler.fail(batch.number(), e);
    }
  }

  /// Notes that a piece is done. A reader's thread calls this, or a store's thread after a remote
  /// read.
  private void done(BatchWork<T> batch) {
    if (scheduler.isLastDone(batch)) {
      finish(batch);
    }
  }

  /// Starts the batch's next phase after all pieces of the current one are done.
  private void finish(BatchWork<T> batch) {
    List<Piece> next;
    try {
      next = batch.startNext();
    } catch (Throwable e) {
      scheduler.fail(batch.number(), e);
      return;
    }
    if (next.isEmpty()) {
      scheduler.filled(batch);
    } else {
      scheduler.goOn(batch, next);
    }
  }
}
