// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingBatch;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.formats.internal.order.BatchBounds;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.MixingAdvice;
import dev.gantry.formats.internal.order.OrderIdentity;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/// The batches of a dataset whose samples are reached by number. Every position of every epoch is reached
/// at once, and a state of one rank serves all ranks.
///
/// It owns the store, and closes it.
public final class EpochBatches implements Batches {
  /// The default limits of reads: requests of 4 MiB, which bridge gaps of up to 16 KiB.
  public static final PlanLimits LIMITS = BatchPlanner.LIMITS;

  private final SampleCatalogue store;
  private final OrderOptions options;
  private final PlanLimits limits;
  private final BatchPlanner planner;
  private final String order;
  private final Runnable closing;
  private final long batches;

  private EpochBatches(
      SampleCatalogue store,
      OrderOptions options,
      PlanLimits limits,
      String order,
      Runnable closing) {
    this.store = store;
    this.options = options;
    this.limits = limits;
    this.order = order;
    this.closing = closing;
    this.batches = EpochOrder.of(store.fileSamples(), options, 0).batches();
    BatchBounds bounds = BatchBounds.of(store.fileSamples(), options);
    this.planner = new BatchPlanner(store, bounds, limits);
  }

  /// Makes batches with the default [#LIMITS].
  ///
  /// @throws MisuseException if a batch would be larger than any memory
  public static EpochBatches of(SampleCatalogue store, OrderOptions options) {
    return of(store, options, BatchPlanner.LIMITS);
  }

  /// @param limits cut the reads; the slab size is ignored, since all bytes of a batch go to its slot
  /// @throws MisuseException if a batch would be larger than any memory
  public static EpochBatches of(SampleCatalogue store, OrderOptions options, PlanLimits limits) {
    String order = OrderIdentity.of(store.identity(), store.fileSamples(), options);
    EpochBatches batches = new EpochBatches(store, options, limits, order, store::close);
    MixingAdvice.ofFiles(
        options.shuffle(), store.fileSamples().stream().filter(samples -> samples > 0).count());
    return batches;
  }

  @Override
  public long slotBytes() {
    return planner.layout().slotBytes();
  }

  @Override
  public long hostBytes() {
    return planner.layout().hostBytes();
  }

  @Override
  public OptionalLong batchesPerEpoch() {
    return OptionalLong.of(batches);
  }

  @Override
  public Optional<SampleCatalogue> catalogue() {
    return Optional.of(store);
  }

  @Override
  public DatasetState start() {
    return new DatasetState(order, 0, 0, "");
  }

  @Override
  public BatchPlanSource<BatchView> from(DatasetState state) {
    OrderIdentity.check(state.order(), order);
    if (state.batch() > batches || !state.cursor().isEmpty()) {
      throw new MisuseException(
          "the state does not fit this dataset, whose epochs have "
              + batches
              + " batches: "
              + state.toText());
    }
    return new Source(
        EpochOrder.of(store.fileSamples(), options, state.epoch()), state.epoch(), state.batch());
  }

  /// Reads the batches of one epoch to host memory, some of them ahead.
  ///
  /// @param taker receives each batch, which is valid until the call returns
  public void readAll(GantrySession session, Consumer<RingBatch<BatchView>> taker) {
    RingOptions options =
        new RingOptions(
            Device.HOST,
            RingOptions.MIN_SLOTS,
            slotBytes(),
            hostBytes(),
            TransferOptions.defaults().withLimits(LIMITS),
            false);
    try (PrefetchRing<BatchView> ring = session.ring(options, from(start()))) {
      for (Optional<RingBatch<BatchView>> next = ring.next();
          next.isPresent();
          next = ring.next()) {
        try (RingBatch<BatchView> batch = next.get()) {
          taker.accept(batch);
        }
      }
    }
  }

  @Override
  public List<Batches> parts(int count) {
    return IntStream.range(0, count)
        .<Batches>mapToObj(
            part -> new EpochBatches(store, options.part(part, count), limits, order, () -> {}))
        .toList();
  }

  @Override
  public boolean lastHasOwn() {
    return EpochOrder.of(store.fileSamples(), options, 0).lastHasOwn();
  }

  @Override
  public void close() {
    closing.run();
  }

  private final class Source implements BatchPlanSource<BatchView> {
    private final EpochOrder samples;
    private final long epoch;
    private long next;

    Source(EpochOrder samples, long epoch, long next) {
      this.samples = samples;
      this.epoch = epoch;
      this.next = next;
    }

    @Override
    public Optional<BatchPlan<BatchView>> next() {
      return next(planner::plan).map(Supplier::get);
    }

    @Override
    public Optional<Supplier<BatchPlan<BatchView>>> nextGathered() {
      return next(planner::gathers);
    }

    private Optional<Supplier<BatchPlan<BatchView>>> next(
        BiFunction<List<SampleRun>, DatasetState, BatchPlan<BatchView>> maker) {
      if (next == batches) {
        return Optional.empty();
      }
      DatasetState after = after();
      long index = next++;
      return Optional.of(() -> maker.apply(samples.batch(index), after));
    }

    @Override
    public void opened(Location file, Object identity) {
      store.opened(file, identity);
    }

    private DatasetState after() {
      return next + 1 < batches
          ? new DatasetState(order, epoch, next + 1, "")
          : new DatasetState(order, epoch + 1, 0, "");
    }
  }
}
