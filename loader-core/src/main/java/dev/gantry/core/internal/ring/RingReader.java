package dev.gantry.core.internal.ring;

import dev.gantry.core.internal.transport.StandingTransfer;
import java.util.List;
import java.util.Optional;

/// What each thread does that fills slots: asks for batches, reads, has things made, copies.
///
/// Sources and writers may be written in languages without checked exceptions, and throw what they
/// do not declare. So everything is caught: a consumer would wait for ever for a reader that is no
/// more.
final class RingReader<T> implements Runnable {
  private final RingScheduler<T> order;
  private final BatchPlanSource<T> source;
  private final BatchPlanCheck check;
  private final StandingTransfer transfer;

  RingReader(
      RingScheduler<T> order,
      BatchPlanSource<T> source,
      BatchPlanCheck check,
      StandingTransfer transfer) {
    this.order = order;
    this.source = source;
    this.check = check;
    this.transfer = transfer;
  }

  @Override
  public void run() {
    try (StandingTransfer.Reader reader = transfer.openReader()) {
      for (Task<T> task = order.take(); task != null; task = order.take()) {
        switch (task) {
          case Task.Ask<T>(long batch, Slot slot) -> ask(batch, slot);
          case Task.Do<T>(BatchWork<T> work, Item item) -> carryOut(work, item, reader);
        }
      }
    } catch (Throwable e) {
      order.end(e);
    }
  }

  private void ask(long batch, Slot slot) {
    long start = System.nanoTime();
    BatchWork<T> work;
    try {
      Optional<BatchPlan<T>> filling = source.next();
      if (filling.isEmpty()) {
        order.exhaust(slot);
        return;
      }
      check.check(batch, filling.get());
      // Only now: after the last batch, memory that is not to be had is missed by nobody.
      slot.prepare();
      work = new BatchWork<>(batch, slot, filling.get(), start);
    } catch (Throwable e) {
      order.failAsking(batch, e);
      return;
    }
    boolean nothingToDo = work.isAllDone();
    order.begin(work);
    if (nothingToDo) {
      finish(work);
    }
  }

  private void carryOut(BatchWork<T> work, Item item, StandingTransfer.Reader reader) {
    try {
      switch (item) {
        case Item.Read(var read) -> reader.read(read, work.slot().target());
        case Item.Make(HostWrites.HostWriter maker) ->
            maker.write(work.slot().made(work.filling().hostWrites()));
        case Item.Copy(Runnable copy) -> copy.run();
      }
    } catch (Throwable e) {
      order.fail(work.number(), e);
      return;
    }
    if (order.isLastDone(work)) {
      finish(work);
    }
  }

  /// All that there was to do for the batch is done; maybe there is more.
  private void finish(BatchWork<T> work) {
    List<Item> copies;
    try {
      copies = work.isCopying() ? List.of() : work.slot().finish(work.filling());
    } catch (RuntimeException | Error e) {
      order.fail(work.number(), e);
      return;
    }
    if (copies.isEmpty()) {
      order.filled(work);
    } else {
      order.goOnCopying(work, copies);
    }
  }
}
