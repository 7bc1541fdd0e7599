package dev.gantry.core.internal.ring;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.transport.StandingTransfer;
import dev.gantry.core.internal.transport.WorkerThreads;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Batches that are filled ahead, as many as there are slots, and handed over in order.
///
/// A batch that fails is thrown in its place, when those before it were handed over; that ends the
/// ring, as a cancellation does at once. Created by [dev.gantry.core.internal.session.GantrySession#ring], which owns it as
/// well. Thread-safe: of several consumers each gets other batches.
public final class PrefetchRing<T> implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(PrefetchRing.class);

  private final RingOptions options;
  private final BatchPlanSource<T> source;
  private final BatchPlanCheck check;
  private final Consumer<PrefetchRing<?>> whenClosed;
  private final StandingTransfer transfer;
  private final List<Slot> slots;
  private final RingTally tally = new RingTally();
  private final RingScheduler<T> order;
  private final Runnable forgetCancellation;
  private final CountDownLatch freed = new CountDownLatch(1);

  /// Guards `readers`, so that whoever closes the ring waits for all that were started.
  private final Object starting = new Object();

  private List<Thread> readers = List.of();

  /// The thread that closes the source, while it does.
  private volatile @Nullable Thread closer;

  private boolean startable = true;

  /// Owns what it is given, unless this throws. Nothing is read before [#start].
  ///
  /// @param whenClosed hears of the end of [#close]
  PrefetchRing(
      RingOptions options,
      BatchPlanSource<T> source,
      BatchPlanCheck check,
      StandingTransfer transfer,
      List<Slot> slots,
      Consumer<PrefetchRing<?>> whenClosed) {
    this.whenClosed = whenClosed;
    this.options = options;
    this.source = source;
    this.check = check;
    this.transfer = transfer;
    this.slots = List.copyOf(slots);
    this.order = new RingScheduler<>(slots, tally);
    this.forgetCancellation =
        options.transfer().cancellation().whenCancelled(() -> order.end(RingScheduler.cancelled()));
  }

  /// Starts the readers, unless the ring was closed before.
  ///
  /// @throws OutOfMemoryError if there is no thread to be had
  void start() {
    synchronized (starting) {
      if (startable) {
        readers =
            WorkerThreads.start(
                transfer.threads(),
                "gantry-ring-",
                new RingReader<>(order, source, check, transfer));
      }
    }
  }

  /// None any more after this.
  private List<Thread> lastReaders() {
    synchronized (starting) {
      startable = false;
      return readers;
    }
  }

  /// The next batch, for which it waits; empty at the end. The caller closes it. Whoever has as
  /// many batches as there are slots waits here until one of them is closed.
  ///
  /// An interruption of the caller ends the ring, as a cancellation does.
  ///
  /// @throws dev.gantry.core.TransferException if the batch's file or device failed, or on
  ///     cancellation; the same from then on
  /// @throws RuntimeException of the source or of a maker, in place of the batch; the same from
  ///     then on
  /// @throws MisuseException if the ring is closed, also while this waits
  public Optional<RingBatch<T>> next() {
    checkOutside("asked");
    long start = System.nanoTime();
    boolean waits = !order.hasNext();
    BatchWork<T> work = order.awaitNext();
    if (work == null) {
      return Optional.empty();
    }
    Optional<RingBatch<T>> batch;
    try {
      if (!work.slot().isReady()) {
        waits = true;
        work.slot().awaitReady();
      }
      long waited = waits ? System.nanoTime() - start : 0;
      batch =
          Optional.of(
              new RingBatch<>(
                  work.number(),
                  work.filling().label(),
                  work.slot().slab(),
                  () -> giveBack(work.slot())));
      account(work, waits, waited);
    } catch (RuntimeException | Error e) {
      // Whatever it is: the ring cannot be closed while this thread is said to be busy with it.
      order.giveBack(work.slot(), false);
      order.end(e);
      throw e;
    }
    order.leave();
    return batch;
  }

  private void account(BatchWork<T> work, boolean waits, long waited) {
    tally.batch(work.filling().hostWrites().bytes());
    if (waits) {
      tally.waited(waited);
    }
    RingBatchEvent event =
        new RingBatchEvent(work.number(), work.bytes(), waited, work.preparedNanos());
    if (event.shouldCommit()) {
      event.commit();
    }
  }

  private void giveBack(Slot slot) {
    if (!order.enter()) {
      slot.release();
      return;
    }
    boolean usable = false;
    try {
      if (slot.giveBack(options.poison()) && tally.replaced()) {
        LOG.info(
            "arrays over a batch's memory live on although the batch is closed: the ring leaves it"
                + " to them and takes other memory, here and wherever else this happens");
      }
      usable = true;
    } catch (RuntimeException | Error e) {
      // The batch was good: this is for whoever wants another.
      order.end(e);
    } finally {
      order.giveBack(slot, usable);
    }
  }

  /// What the ring has done so far, also after it was closed.
  public RingStatistics statistics() {
    return tally.statistics(transfer.report());
  }

  /// Ends the ring: waits for what is being asked, read and made, closes the source and frees the
  /// slots. Batches that were handed over stay valid until they are closed. Closing again waits for
  /// the first to be done, and does nothing.
  ///
  /// @throws MisuseException if the source or a maker calls it, which could only wait for itself
  @Override
  public void close() {
    checkOutside("closed");
    if (!order.close()) {
      Uninterruptibly.await(freed);
      return;
    }
    try {
      forgetCancellation.run();
      lastReaders().forEach(Uninterruptibly::join);
      Set<Slot> consumers = order.awaitIdle();
      List<Runnable> actions = new ArrayList<>();
      actions.add(this::closeSource);
      actions.add(transfer::close);
      slots.forEach(slot -> actions.add(slot::dismantle));
      slots.stream()
          .filter(slot -> !consumers.contains(slot))
          .forEach(slot -> actions.add(slot::release));
      actions.add(() -> whenClosed.accept(this));
      Cleanup.runAll(actions);
    } finally {
      freed.countDown();
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

  void checkOutside(String what) {
    synchronized (starting) {
      Thread caller = Thread.currentThread();
      if (readers.contains(caller) || caller.equals(closer)) {
        throw new MisuseException("a ring cannot be " + what + " by its own source or makers");
      }
    }
  }
}
