// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Supplier;

/// Gives the batches of several epochs in sequence, so that the ring need not drain between two epochs.
public final class EpochChain implements BatchPlanSource<BatchView> {
  private final Batches batches;
  private final long lastEpoch;

  /// The epochs before the current one that still have a batch to write: no more than the ring asks for ahead.
  private final List<Epoch> earlier = new ArrayList<>();

  private volatile Epoch current;
  private long epoch;

  /// Whether the current epoch has any batches: it has given one, or began after its first.
  private boolean hasBatches;

  /// @param from the state at which to begin
  /// @param lastEpoch the number of the last epoch
  public EpochChain(Batches batches, DatasetState from, long lastEpoch) {
    this.batches = batches;
    this.lastEpoch = lastEpoch;
    this.epoch = from.epoch();
    this.hasBatches = from.batch() > 0;
    this.current = new Epoch(batches.from(from));
  }

  @Override
  public Optional<BatchPlan<BatchView>> next() {
    return next(false).map(Supplier::get);
  }

  @Override
  public Optional<Supplier<BatchPlan<BatchView>>> nextGathered() {
    return next(true);
  }

  private Optional<Supplier<BatchPlan<BatchView>>> next(boolean gathered) {
    Optional<Supplier<BatchPlan<BatchView>>> plan = current.next(gathered);
    // All epochs have the same number of batches, so if one epoch has none, no epoch has any.
    while (plan.isEmpty() && hasBatches && epoch < lastEpoch) {
      Epoch following = new Epoch(batches.from(batches.start().atEpoch(epoch + 1)));
      earlier.add(current);
      current = following;
      epoch++;
      hasBatches = false;
      closeWritten();
      plan = current.next(gathered);
    }
    hasBatches |= plan.isPresent();
    return plan;
  }

  /// Asks the current epoch's source alone, since all epochs read the same files.
  @Override
  public void opened(Location file, Object identity) {
    current.source.opened(file, identity);
  }

  private void closeWritten() {
    List<Epoch> made = earlier.stream().filter(Epoch::isWritten).toList();
    earlier.removeAll(made);
    close(made);
  }

  private static void close(List<Epoch> epochs) {
    Cleanup.forEach(epochs, each -> each.source.close());
  }

  @Override
  public void close() {
    earlier.add(current);
    close(earlier);
  }

  /// An epoch's source, and how many plans and writers of its batches have yet to run.
  private static final class Epoch {
    final BatchPlanSource<BatchView> source;
    private final AtomicLong unwritten = new AtomicLong();

    Epoch(BatchPlanSource<BatchView> source) {
      this.source = source;
    }

    Optional<Supplier<BatchPlan<BatchView>>> next(boolean gathered) {
      Optional<Supplier<BatchPlan<BatchView>>> plan =
          gathered ? source.nextGathered() : source.next().map(made -> () -> made);
      // A plan that is not made yet counts as a writer.
      plan.ifPresent(_ -> unwritten.incrementAndGet());
      return plan.map(later -> () -> counted(later.get()));
    }

    private BatchPlan<BatchView> counted(BatchPlan<BatchView> plan) {
      HostWrites made = plan.hostWrites();
      unwritten.addAndGet(made.writers().size() - 1L);
      if (made.writers().isEmpty()) {
        return plan;
      }
      List<HostWrites.HostWriter> writers =
          made.writers().stream()
              .<HostWrites.HostWriter>map(writer ->
                  target -> {
                    writer.write(target);
                    unwritten.decrementAndGet();
                  })
              .toList();
      return plan.withHostWrites(new HostWrites(made.slotOffset(), made.bytes(), writers));
    }

    boolean isWritten() {
      return unwritten.get() == 0;
    }
  }
}
