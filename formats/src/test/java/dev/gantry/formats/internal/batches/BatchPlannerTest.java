// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.Field;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.order.BatchBounds;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

class BatchPlannerTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final DatasetState AFTER = new DatasetState("", 0, 1, "");
  private static final Location FILE = Location.of("file");

  /// A catalogue of images of any size in one file. The first image follows a header, and each
  /// later one begins `distance` bytes behind the one before.
  private record Images(Field field, long samples, long header, long distance, boolean made)
      implements SampleCatalogue {
    @Override
    public List<Field> fields() {
      return List.of(field);
    }

    @Override
    public List<Long> fileSamples() {
      return List.of(samples);
    }

    @Override
    public String identity() {
      return "images";
    }

    @Override
    public FieldSource source(int number) {
      return made
          ? new FieldSource.HostWritten()
          : new FieldSource.InFiles(distance, header % 4 == 0 && distance % 4 == 0);
    }

    @Override
    public void pieces(int number, SampleRun run, PieceSink sink) {
      long first = header + run.first() * distance;
      if (distance == field.sampleBytes()) {
        sink.piece(FILE, first, run.count());
      } else {
        for (int i = 0; i < run.count(); i++) {
          sink.piece(FILE, first + i * distance, 1);
        }
      }
    }

    @Override
    public void write(int number, SampleRun run, MemorySegment target, long offset) {
      for (int i = 0; i < run.count(); i++) {
        target.set(ValueLayout.JAVA_INT_UNALIGNED, offset + 4L * i, (int) (run.first() + i) + 1);
      }
    }
  }

  private static final Field PICTURE = new Field("picture", DType.F32, TensorShape.of(28, 28));
  private static final int PICTURE_BYTES = 28 * 28 * 4;

  private static BatchPlanner planner(SampleCatalogue store, OrderOptions options) {
    return new BatchPlanner(
        store, BatchBounds.of(store.fileSamples(), options), BatchPlanner.LIMITS);
  }

  @Test
  void consecutiveSamplesThatLieEndToEndAreOneReadWithoutACopy() {
    SampleCatalogue store = new Images(PICTURE, 60_000, BLOCK, PICTURE_BYTES, false);
    BatchPlanner planner = planner(store, OrderOptions.of(512));
    BatchPlan<BatchView> plan = planner.plan(List.of(new SampleRun(0, 512, 512)), AFTER);
    long first = BLOCK + 512L * PICTURE_BYTES;
    assertThat(plan.reads())
        .containsExactly(new Read(FILE, first, 512L * PICTURE_BYTES, 512L * PICTURE_BYTES, 0, 0));
    assertThat(plan.copies()).isEmpty();
    assertThat(plan.hostWrites()).isEqualTo(HostWrites.NONE);
    assertThat(plan.label())
        .isEqualTo(
            new BatchView(
                512,
                List.of(
                    new FieldView(
                        "picture",
                        DType.F32,
                        TensorShape.of(512, 28, 28),
                        0,
                        List.of(784L, 28L, 1L))),
                AFTER));
    assertThat(planner.layout().packedBytes()).isZero();
    assertThat(planner.layout().slotBytes())
        .isBetween(512L * PICTURE_BYTES, 512L * PICTURE_BYTES + 7 * BLOCK);
  }

  @Test
  void samplesAtOneDistanceStayWhereTheyAre() {
    SampleCatalogue store = new Images(PICTURE, 1000, 12, PICTURE_BYTES + 20, false);
    BatchPlanner planner = planner(store, OrderOptions.of(100));
    BatchPlan<BatchView> plan = planner.plan(List.of(new SampleRun(0, 0, 100)), AFTER);
    assertThat(plan.reads()).hasSize(1);
    assertThat(plan.copies()).isEmpty();
    FieldView view = plan.label().fields().getFirst();
    assertThat(view.offset()).isEqualTo(12);
    assertThat(view.strides()).containsExactly(784L + 5, 28L, 1L);
    // A slot has little more than the read bytes and the memory to pack the images of other
    // batches.
    assertThat(planner.layout().rawBytes())
        .isBetween(100L * PICTURE_BYTES, 100L * (PICTURE_BYTES + 20) + 7 * BLOCK);
  }

  @Test
  void samplesThatAreNotAlignedArePackedByOneCopy() {
    SampleCatalogue store = new Images(PICTURE, 1000, 13, PICTURE_BYTES + 18, false);
    BatchPlanner planner = planner(store, OrderOptions.of(100));
    BatchPlan<BatchView> plan = planner.plan(List.of(new SampleRun(0, 0, 100)), AFTER);
    long to = planner.layout().packedOffset();
    assertThat(plan.copies())
        .containsExactly(new Copy2D(13, PICTURE_BYTES + 18, to, PICTURE_BYTES, PICTURE_BYTES, 100));
    FieldView view = plan.label().fields().getFirst();
    assertThat(view.offset()).isEqualTo(to);
    assertThat(view.strides()).containsExactly(784L, 28L, 1L);
  }

  @Test
  void aRepeatedSampleIsReadOnce() {
    SampleCatalogue store = new Images(PICTURE, 2, BLOCK, PICTURE_BYTES, false);
    OrderOptions options = new OrderOptions(5, LastBatch.PAD, new Shuffle.None(), 1, 1, 0, 1);
    BatchPlan<BatchView> plan =
        planner(store, options).plan(EpochOrder.of(List.of(2L), options, 0).batch(0), AFTER);
    assertThat(plan.reads()).hasSize(1);
    assertThat(plan.reads().getFirst().required()).isEqualTo(2L * PICTURE_BYTES);
    assertThat(plan.copies().stream().mapToLong(c -> c.rows() * c.width()).sum())
        .isEqualTo(5L * PICTURE_BYTES);
  }

  @Test
  void largeReadsAreSplitForSeveralReaders() {
    SampleCatalogue store = new Images(PICTURE, 60_000, BLOCK, PICTURE_BYTES, false);
    BatchPlan<BatchView> plan =
        planner(store, OrderOptions.of(4096)).plan(List.of(new SampleRun(0, 0, 4096)), AFTER);
    assertThat(plan.reads()).hasSize(4).allMatch(read -> read.length() <= 4 << 20);
  }

  @Test
  void manyLabelsAreMadeInParts() {
    Field label = new Field("label", DType.I32, TensorShape.of());
    SampleCatalogue store = new Images(label, 1 << 20, 0, 4, true);
    BatchPlanner planner = planner(store, OrderOptions.of(200_000));
    BatchPlan<BatchView> plan =
        planner.plan(List.of(new SampleRun(0, 7, 150_000), new SampleRun(0, 0, 50_000)), AFTER);
    HostWrites made = plan.hostWrites();
    assertThat(plan.reads()).isEmpty();
    assertThat(made.writers()).hasSize(4);
    assertThat(made.bytes()).isEqualTo(800_000).isEqualTo(planner.layout().hostBytes());
    MemorySegment target = MemorySegment.ofArray(new byte[(int) made.bytes()]);
    made.writers().forEach(maker -> maker.write(target));
    int[] labels = target.asSlice(0, 800_000).toArray(ValueLayout.JAVA_INT_UNALIGNED);
    assertThat(labels)
        .containsExactly(
            IntStream.concat(IntStream.rangeClosed(8, 150_007), IntStream.rangeClosed(1, 50_000))
                .toArray());
  }

  @Test
  void aSlotOfManySmallSamplesIsNoLargerThanTheFiles() {
    SampleCatalogue store = new Images(PICTURE, 60_000, BLOCK, PICTURE_BYTES, false);
    OrderOptions options =
        new OrderOptions(1 << 20, LastBatch.PAD, new Shuffle.Blocks(1, 1), 1, 1, 0, 1);
    assertThat(planner(store, options).layout().rawBytes())
        .isLessThanOrEqualTo(60_000L * PICTURE_BYTES + 7 * BLOCK);
  }

  /// The labels of 6,000 samples have 48 KB, so about 1.5 KB lie between two labels of a batch.
  @Test
  void smallSamplesInRandomOrderAreOneRead() {
    Field label = new Field("label", DType.I64, TensorShape.of());
    SampleCatalogue store = new Images(label, 6000, BLOCK, Long.BYTES, false);
    OrderOptions options =
        new OrderOptions(32, LastBatch.KEEP, new Shuffle.Samples(42), 1, 1, 0, 1);
    EpochOrder order = EpochOrder.of(store.fileSamples(), options, 0);
    BatchPlanner planner = planner(store, options);
    for (long batch = 0; batch < order.batches(); batch++) {
      BatchPlan<BatchView> plan = planner.plan(order.batch(batch), AFTER);
      assertThat(plan.reads()).hasSize(1);
      assertThat(plan.reads().getFirst().length()).isLessThanOrEqualTo(12 * BLOCK);
    }
  }

  @Test
  void aStoreThatTakesMoreThanItSaidIsFoundOut() {
    BatchPlanner planner =
        planner(new Images(PICTURE, 60_000, BLOCK, PICTURE_BYTES + 4, false), OrderOptions.of(100));
    List<SampleRun> tooMany = List.of(new SampleRun(0, 0, 1000));
    assertThatThrownBy(() -> planner.plan(tooMany, AFTER))
        .isInstanceOf(IllegalStateException.class);
  }

  @Test
  void aDatasetWithoutSamplesStillHasASlot() {
    SampleCatalogue store = new Images(PICTURE, 0, BLOCK, PICTURE_BYTES, false);
    assertThat(planner(store, OrderOptions.of(8)).layout().slotBytes()).isEqualTo(BLOCK);
  }
}
