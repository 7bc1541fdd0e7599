// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.OnDemandTransfer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Fills batches before their consumer asks for them, as many as there are slots, and hands them over in order.
///
/// If a batch fails, [#next] returns the batches before it and then throws the failure, which ends
/// the ring. A cancellation ends the ring at once.
/// [dev.gantry.core.internal.session.GantrySession#ring] makes rings, and the session owns them.
/// Thread-safe: several consumers each get different batches.
public final class PrefetchRing<T> implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PrefetchRing.class);

  /// How many batches are planned before they have a slot, if a kernel gathers them. Planning
  /// thousands of short samples takes longer than fetching them, and the slot would be idle while
  /// its batch is planned.
  private static final int PLANNED_AHEAD = 2;

  private final RingOptions options;
  private final BatchPlanSource<T> source;
  private final OnDemandTransfer transfer;

  /// The last steps of [#close]. The constructor makes this list before it allocates anything that
  /// the steps free.
  private final List<Runnable> closing = new ArrayList<>();

  private final RingStatistics.Counter counter;
  private final RingScheduler<T> scheduler;
  private final RingReader<T> reader;
  private final Runnable forgetCancellation;
  private final CompletableFuture<Void> freed = new CompletableFuture<>();

  /// The lock of `readers`, so that [#close] waits for all readers that were started.
  private final Object starting = new Object();

  private WorkerThreads.@Nullable Started readers;

  /// The thread that is closing the source, if one is.
  private volatile @Nullable Thread closer;

  private boolean startable = true;

  /// Takes ownership of the arguments, unless this constructor throws. Nothing is read before
  /// [#start].
  ///
  /// @param whenClosed called at the end of [#close]
  PrefetchRing(
      RingOptions options,
      BatchPlanSource<T> source,
      OnDemandTransfer transfer,
      List<Slot> slots,
      SessionCounters session,
      Consumer<PrefetchRing<?>> whenClosed) {
    this.options = options;
    this.source = source;
    this.transfer = transfer;
    this.counter = new RingStatistics.Counter(session);
    boolean onDevice = options.device() instanceof Device.Cuda;
    this.scheduler =
        new RingScheduler<>(
            slots, onDevice ? Math.min(PLANNED_AHEAD, transfer.threads() - 1) : 0, counter);
    this.reader = new RingReader<>(scheduler, source, options, transfer);
    closing.add(this::closeSource);
    closing.add(transfer::close);
    slots.forEach(slot -> closing.add(slot::close));
    slots.forEach(slot -> closing.add(() -> release(slot)));
    closing.add(() -> whenClosed.accept(this));
    this.forgetCancellation =
        options
            .transfer()
            .cancellation()
            .whenCancelled(() -> scheduler.end(RingScheduler.cancelled()));
  }

  /// Starts the readers, unless the ring was closed before.
  ///
  /// @throws OutOfMemoryError if no thread can be started
  void start() {
    synchronized (starting) {
      if (startable) {
        readers = WorkerThreads.start(transfer.threads(), "gantry-ring-", reader);
      }
    }
  }

  /// The readers to wait for; no reader is started after this call.
  private WorkerThreads.@Nullable Started lastReaders() {
    synchronized (starting) {
      startable = false;
      return readers;
    }
  }

  private void awaitReaders() {
    WorkerThreads.Started last = lastReaders();
    if (last != null) {
      last.join();
    }
  }

  /// Waits for the next batch; empty after the source's last batch. The caller closes the batch.
  /// If the consumer holds as many batches as there are slots, this waits until one of them is
  /// closed.
  ///
  /// An interruption of the caller ends the ring, as a cancellation does.
  ///
  /// @throws dev.gantry.core.TransferException if the batch's file or device failed, or on
  ///     cancellation; every later call throws the same
  /// @throws RuntimeException thrown by the source or a host writer, in place of the batch; every later call
  ///     throws the same
  /// @throws MisuseException if the ring is closed, also while this waits
  public Optional<RingBatch<T>> next() {
    requireOutside("asked");
    long start = System.nanoTime();
    TimedEvent wait = TimedEvent.begun(EventKind.WAIT);
    boolean waits = !scheduler.hasNext();
    BatchWork<T> work = scheduler.awaitNext(reader::askSource);
    if (work == null) {
      return Optional.empty();
    }
    Optional<RingBatch<T>> batch;
    try {
      if (!work.slot().isReady()) {
        waits = true;
        work.slot().awaitReady();
      }
      work.slot().check();
      long waited = waits ? System.nanoTime() - start : 0;
      batch =
          Optional.of(
              new RingBatch<>(
                  work.number(),
                  work.plan().label(),
                  work.slot().slab(),
                  () -> giveBack(work.slot())));
      if (waits) {
        wait.done("batch");
      }
      account(work, waits, waited);
    } catch (RuntimeException | Error e) {
      // The slot is given back after any failure, because [#close] waits as long as this thread
      // counts as busy.
      scheduler.giveBack(work.slot(), false);
      scheduler.end(e);
      throw e;
    }
    scheduler.leave();
    return batch;
  }

  private void account(BatchWork<T> work, boolean waits, long waited) {
    counter.addBatch(work.plan().hostWrites().bytes());
    if (waits) {
      counter.addWait(waited);
    }
    TimedEvent event = TimedEvent.begun(EventKind.RING_BATCH);
    if (event.isUnderWay()) {
      event.done(work.number(), work.plan().bytes(), waited, work.preparedNanos());
    }
  }

  private void giveBack(Slot slot) {
    if (!scheduler.enter()) {
      slot.release();
      return;
    }
    boolean usable = false;
    try {
      if (slot.giveBack(options.poison()) && counter.addReplacedSlot()) {
        LOG.info(
            "a batch was closed while its arrays are still in use; allocated a replacement slot"
                + " (logged once a ring)");
      }
      usable = true;
    } catch (RuntimeException | Error e) {
      // The consumer's batch was good, so closing it does not throw; the next call of [#next]
      // throws this failure.
      scheduler.end(e);
    } finally {
      scheduler.giveBack(slot, usable);
    }
  }

  /// Returns the ring's counters, also after it was closed.
  public RingStatistics statistics() {
    return counter.statistics(transfer.report());
  }

  /// Ends the ring: waits for the source, reads and host writers that are running, closes the source
  /// and frees the slots. Batches that the consumer has stay valid until they are closed. A second
  /// call waits for the first to finish.
  ///
  /// @throws MisuseException if the source or a host writer calls this, which would make it wait
  ///     for itself
  @Override
  public void close() {
    requireOutside("closed");
    if (!scheduler.close()) {
      freed.join();
      return;
    }
    try {
      forgetCancellation.run();
      transfer.endReads();
      awaitReaders();
      transfer.awaitRemote();
      scheduler.awaitIdle();
      Cleanup.runAll(closing);
    } finally {
      freed.complete(null);
    }
  }

  /// Frees a slot's memory, unless the consumer still has the slot's batch: closing that batch
  /// frees the memory then.
  private void release(Slot slot) {
    if (!scheduler.isOut(slot)) {
      slot.release();
    }
  }

  private void closeSource() {
    closer = Thread.currentThread();
    try {
      source.close();
    } finally {
      closer = null;
    }
  }

  void requireOutside(String what) {
    synchronized (starting) {
      Thread caller = Thread.currentThread();
      if ((readers != null && readers.contains(caller))
          || caller.equals(closer)
          || reader.isAsking()) {
        throw new MisuseException(
            "a ring cannot be " + what + " by its own source or host writers");
      }
    }
  }
}
