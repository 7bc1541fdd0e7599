// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.formats.Field;
import dev.gantry.formats.internal.order.BatchBounds;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.order.Orders;
import dev.gantry.formats.spi.SampleRun;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.LongRange;

class BatchPlannerPropertyTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;

  @Provide
  Arbitrary<OrderOptions> options() {
    return Orders.options();
  }

  @Provide
  Arbitrary<MemoryCatalogue> stores() {
    return Combinators.combine(
            fields(),
            Orders.shards(),
            Arbitraries.of(MemoryCatalogue.Kind.class),
            Arbitraries.longs())
        .as(MemoryCatalogue::of)
        .withoutEdgeCases();
  }

  @Provide
  Arbitrary<PlanLimits> limits() {
    return Combinators.combine(
            Arbitraries.of(BLOCK, 2 * BLOCK, 1 << 20), Arbitraries.of(0, 1, BLOCK, 16 << 10))
        .as((request, gap) -> new PlanLimits(request, gap, BLOCK))
        .withoutEdgeCases();
  }

  /// Returns fields of single numbers, of no bytes, or of a few blocks.
  private static Arbitrary<List<Field>> fields() {
    Arbitrary<TensorShape> shapes =
        Arbitraries.of(
            TensorShape.of(),
            TensorShape.of(3),
            TensorShape.of(2, 0),
            TensorShape.of(0, 2),
            TensorShape.of(3, 1, 5),
            TensorShape.of(BLOCK),
            TensorShape.of(1500, 2));
    Arbitrary<DType> types = Arbitraries.of(DType.U8, DType.BF16, DType.F32, DType.I64, DType.BOOL);
    return Combinators.combine(types, shapes)
        .as((type, shape) -> new Field("f", type, shape))
        .list()
        .ofMinSize(1)
        .ofMaxSize(4);
  }

  @Property
  void viewsHoldTheSamplesInOrder(
      @ForAll("stores") MemoryCatalogue store,
      @ForAll("options") OrderOptions options,
      @ForAll("limits") PlanLimits limits,
      @ForAll @LongRange(max = 100) long epoch) {
    EpochBatches batches = EpochBatches.of(store, options, limits);
    EpochOrder order = EpochOrder.of(store.fileSamples(), options, epoch);
    BatchPlanner planner =
        new BatchPlanner(store, BatchBounds.of(store.fileSamples(), options), limits);
    for (long batch = 0; batch < order.batches(); batch++) {
      List<SampleRun> runs = order.batch(batch);
      BatchPlan<BatchView> plan = planner.plan(runs, batches.start());
      checkReads(plan.reads(), limits, planner.layout());
      byte[] slot = SlotSimulation.fill(plan, store, batches.slotBytes(), batches.hostBytes());
      byte[] gathered =
          SlotSimulation.gather(plan, store, batches.slotBytes(), batches.hostBytes());
      BatchView view = plan.label();
      List<Orders.Sample> samples = Orders.samples(runs);
      assertThat(view.samples()).isEqualTo(samples.size());
      assertThat(view.fields()).hasSameSizeAs(store.fields());
      for (int field = 0; field < store.fields().size(); field++) {
        assertThat(SlotSimulation.values(slot, view.fields().get(field), store.fields().get(field)))
            .isEqualTo(store.values(field, samples))
            .isEqualTo(
                SlotSimulation.values(
                    gathered, view.fields().get(field), store.fields().get(field)));
      }
      checkGathersOnly(planner, runs, batches, store);
    }
  }

  /// Checks that the plan without reads has the same values, and can be turned into the plan with
  /// reads.
  private static void checkGathersOnly(
      BatchPlanner planner, List<SampleRun> runs, EpochBatches batches, MemoryCatalogue store) {
    BatchPlan<BatchView> plan = planner.gathers(runs, batches.start());
    assertThat(plan.reads()).isEmpty();
    byte[] slot = SlotSimulation.gather(plan, store, batches.slotBytes(), batches.hostBytes());
    List<Orders.Sample> samples = Orders.samples(runs);
    for (int field = 0; field < store.fields().size(); field++) {
      FieldView view = plan.label().fields().get(field);
      assertThat(SlotSimulation.values(slot, view, store.fields().get(field)))
          .isEqualTo(store.values(field, samples));
    }
    BatchPlan<BatchView> byReads = plan.byReads();
    assertThat(byReads.reads()).isEqualTo(planner.plan(runs, batches.start()).reads());
    assertThat(byReads.label()).isEqualTo(planner.plan(runs, batches.start()).label());
  }

  /// Checks that reads are aligned, read each byte once and fill no byte of the slot twice.
  private static void checkReads(List<Read> reads, PlanLimits limits, BatchLayout layout) {
    for (Read read : reads) {
      assertThat(read.slab()).isZero();
      assertThat(read.fileOffset() % BLOCK).isZero();
      assertThat(read.length() % BLOCK).isZero();
      assertThat(read.slabOffset() % BLOCK).isZero();
      assertThat(read.length()).isBetween(1L, limits.requestBytes());
      assertThat(read.required()).isBetween(1L, read.length());
      assertThat(read.slabOffset() + read.length()).isLessThanOrEqualTo(layout.rawBytes());
    }
    List<Read> bySlot = new ArrayList<>(reads);
    bySlot.sort(Comparator.comparingLong(Read::slabOffset));
    List<Read> byFile = new ArrayList<>(reads);
    byFile.sort(
        Comparator.comparing((Read read) -> read.file().path())
            .thenComparingLong(Read::fileOffset));
    for (int i = 1; i < reads.size(); i++) {
      Read before = bySlot.get(i - 1);
      assertThat(bySlot.get(i).slabOffset())
          .isGreaterThanOrEqualTo(before.slabOffset() + before.length());
      Read earlier = byFile.get(i - 1);
      if (earlier.file().equals(byFile.get(i).file())) {
        assertThat(byFile.get(i).fileOffset())
            .isGreaterThanOrEqualTo(earlier.fileOffset() + earlier.length());
      }
    }
  }
}
