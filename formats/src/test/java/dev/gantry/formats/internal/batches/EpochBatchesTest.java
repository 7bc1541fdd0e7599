// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.formats.Field;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.internal.order.EpochOrder;
import dev.gantry.formats.internal.order.OrderOptions;
import dev.gantry.formats.internal.order.Orders;
import dev.gantry.formats.spi.FieldSource;
import dev.gantry.formats.spi.SampleCatalogue;
import dev.gantry.formats.spi.SampleRun;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.constraints.IntRange;

class EpochBatchesTest {
  private static final List<Field> FIELDS =
      List.of(
          new Field("x", DType.F32, TensorShape.of(2)), new Field("y", DType.U8, TensorShape.of()));

  @Provide
  Arbitrary<List<Long>> shards() {
    return Orders.shards();
  }

  @Provide
  Arbitrary<OrderOptions> options() {
    return Orders.options();
  }

  private static MemoryCatalogue store(List<Long> shards) {
    return MemoryCatalogue.of(FIELDS, shards, MemoryCatalogue.Kind.LABELLED, 1);
  }

  private static List<BatchPlan<BatchView>> rest(Batches batches, DatasetState state) {
    List<BatchPlan<BatchView>> rest = new ArrayList<>();
    try (BatchPlanSource<BatchView> source = batches.from(state)) {
      for (Optional<BatchPlan<BatchView>> next = source.next();
          next.isPresent();
          next = source.next()) {
        rest.add(next.get());
      }
      assertThat(source.next()).isEmpty();
    }
    return rest;
  }

  private static List<?> content(List<BatchPlan<BatchView>> plans) {
    return plans.stream().map(plan -> List.of(plan.reads(), plan.copies(), plan.label())).toList();
  }

  /// The epoch continues after any batch, in this process or another, from the state of any rank.
  @Property(tries = 300)
  void whatIsLeftIsTheSameAfterAnyBatch(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions options,
      @ForAll @IntRange(max = 3) int epochs) {
    EpochBatches batches = EpochBatches.of(store(shards), options);
    EpochBatches ofLastRank =
        EpochBatches.of(
            store(shards), Orders.ranked(options, options.world() - 1, options.world()));
    DatasetState state = ofLastRank.start();
    long count = batches.batchesPerEpoch().orElseThrow();
    for (int epoch = 0; epoch < (count == 0 ? 0 : epochs); epoch++) {
      List<BatchPlan<BatchView>> all = rest(batches, state);
      assertThat(all).hasSize((int) count);
      for (int batch = 0; batch < count; batch++) {
        assertThat(content(rest(EpochBatches.of(store(shards), options), state)))
            .isEqualTo(content(all.subList(batch, all.size())));
        state = DatasetState.parse(all.get(batch).label().after().toText());
      }
      assertThat(state.epoch()).isEqualTo(epoch + 1L);
      assertThat(state.batch()).isZero();
      // A state may also describe the end of an epoch by the epoch's own numbers.
      assertThat(rest(batches, new DatasetState(state.order(), epoch, count, ""))).isEmpty();
    }
  }

  /// The states are those of whole batches, and all parts of a batch together have its samples in
  /// its order.
  @Property(tries = 300)
  void partsTogetherAreTheBatch(
      @ForAll("shards") List<Long> shards,
      @ForAll("options") OrderOptions part,
      @ForAll @IntRange(min = 1, max = 4) int count) {
    OrderOptions options =
        new OrderOptions(
            part.batchSize() * count,
            part.lastBatch(),
            part.shuffle(),
            part.interleave(),
            part.interleaveBlock(),
            part.rank(),
            part.world());
    EpochBatches whole = EpochBatches.of(store(shards), options);
    DatasetState state = whole.start().atEpoch(1);
    List<BatchPlan<BatchView>> all = rest(whole, state);
    List<List<BatchPlan<BatchView>>> parts =
        whole.parts(count).stream().map(each -> rest(each, state)).toList();

    for (int batch = 0; batch < all.size(); batch++) {
      BatchView expected = all.get(batch).label();
      List<Long> samples = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        BatchView view = parts.get(i).get(batch).label();
        assertThat(view.after()).isEqualTo(expected.after());
        List<Long> numbers = numbers(shards, options.part(i, count), batch);
        assertThat(view.samples()).isEqualTo(numbers.size());
        if (batch < all.size() - 1 || whole.parts(count).get(i).lastHasOwn()) {
          samples.addAll(numbers);
        }
      }
      if (expected.samples() == options.batchSize()) {
        assertThat(samples).isEqualTo(numbers(shards, options, batch));
      } else if (options.world() == 1) {
        // Each sample comes once, and no other sample comes.
        assertThat(samples).isEqualTo(numbers(shards, options, batch));
      }
    }
    parts.forEach(each -> assertThat(each).hasSameSizeAs(all));
  }

  /// @return a number for each sample, made of its file and its number there
  private static List<Long> numbers(List<Long> shards, OrderOptions options, int batch) {
    List<Long> numbers = new ArrayList<>();
    for (SampleRun run : EpochOrder.of(shards, options, 1).batch(batch)) {
      for (long sample = 0; sample < run.count(); sample++) {
        numbers.add((long) run.file() << 32 | (run.first() + sample));
      }
    }
    return numbers;
  }

  @Example
  void aBatchThatCannotBeCutIntoEqualPartsIsRefused() {
    EpochBatches batches = EpochBatches.of(store(List.of(10L)), options(4, new Shuffle.None(), 1));
    assertThatThrownBy(() -> batches.parts(3))
        .isInstanceOf(MisuseException.class)
        .hasMessage("setSampling must be a multiple of the 3 devices of optDevices (was 4)");
  }

  private static OrderOptions options(int batchSize, Shuffle shuffle, int world) {
    return new OrderOptions(batchSize, LastBatch.KEEP, shuffle, 1, 1, 0, world);
  }

  @Example
  void aStateOfAnotherOrderIsRefusedAndSaysInWhat() {
    List<Long> shards = List.of(10L, 20L);
    Batches batches = EpochBatches.of(store(shards), options(4, new Shuffle.Blocks(7, 2), 1));
    DatasetState start = batches.start();
    assertThat(start.order())
        .matches("[0-9a-f]{16},batch=4,last=KEEP,shuffle=blocks:7:2,interleave=1x1,world=1");
    Batches others = EpochBatches.of(store(shards), options(8, new Shuffle.Blocks(8, 2), 1));
    assertThatThrownBy(() -> others.from(start))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "the state is of another order of the samples: batch=4 (now batch=8),"
                + " shuffle=blocks:7:2 (now shuffle=blocks:8:2)");
    Batches moreRanks = EpochBatches.of(store(shards), options(4, new Shuffle.Blocks(7, 2), 2));
    assertThatThrownBy(() -> moreRanks.from(start))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("world=1 (now world=2)");
    Batches moreSamples =
        EpochBatches.of(store(List.of(20L, 10L)), options(4, new Shuffle.Blocks(7, 2), 1));
    assertThatThrownBy(() -> moreSamples.from(start))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("another dataset or of other samples of it");
    assertThatThrownBy(() -> batches.from(new DatasetState("stream", 0, 0, "")))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("another kind of dataset");
  }

  @Example
  void aStatePastTheEpochIsRefused() {
    Batches batches = EpochBatches.of(store(List.of(10L)), options(4, new Shuffle.None(), 1));
    String order = batches.start().order();
    for (DatasetState state :
        List.of(new DatasetState(order, 0, 4, ""), new DatasetState(order, 0, 0, "17"))) {
      assertThatThrownBy(() -> batches.from(state))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("epochs have 3 batches");
    }
  }

  /// A catalogue of four samples whose values have this size.
  private record Enormous(long bytes, FieldSource from) implements SampleCatalogue {
    @Override
    public List<Field> fields() {
      return List.of(new Field("x", DType.U8, TensorShape.of(bytes)));
    }

    @Override
    public List<Long> fileSamples() {
      return List.of(4L);
    }

    @Override
    public String identity() {
      return "enormous";
    }

    @Override
    public FieldSource source(int field) {
      return from;
    }

    @Override
    public void pieces(int field, SampleRun run, PieceSink sink) {}

    @Override
    public void write(int field, SampleRun run, MemorySegment target, long offset) {}
  }

  @Example
  void aBatchThatNoMemoryHoldsIsAMisuse() {
    for (long bytes : new long[] {1L << 61, Long.MAX_VALUE / 4, 1L << 62, Long.MAX_VALUE}) {
      for (FieldSource source :
          List.of(
              new FieldSource.HostWritten(),
              new FieldSource.InFiles(bytes, true),
              new FieldSource.InFiles(bytes, false))) {
        SampleCatalogue store = new Enormous(bytes, source);
        assertThatThrownBy(() -> EpochBatches.of(store, OrderOptions.of(4)))
            .as("%s", store)
            .isInstanceOf(MisuseException.class)
            .hasMessage("no memory holds a batch of 4 samples; make it smaller");
      }
    }
  }

  @Example
  void theStoreIsClosed() {
    MemoryCatalogue store = store(List.of(10L));
    EpochBatches.of(store, OrderOptions.of(4)).close();
    assertThat(store.isClosed()).isTrue();
  }

  /// The CPU writes values for the epoch of their batch, even in the last batch of an epoch.
  @Example
  void valuesAreWrittenForTheirEpoch() {
    SampleCatalogue store =
        new SampleCatalogue() {
          @Override
          public List<Field> fields() {
            return List.of(new Field("epoch", DType.I64, TensorShape.of()));
          }

          @Override
          public List<Long> fileSamples() {
            return List.of(5L);
          }

          @Override
          public String identity() {
            return "epochs";
          }

          @Override
          public FieldSource source(int field) {
            return new FieldSource.HostWritten();
          }

          @Override
          public void pieces(int field, SampleRun run, PieceSink sink) {
            throw new IllegalStateException("nothing lies in files");
          }

          @Override
          public void write(int field, SampleRun run, MemorySegment target, long offset) {
            throw new IllegalStateException("the epoch is known");
          }

          @Override
          public void write(
              int field, SampleRun run, long epoch, MemorySegment target, long offset) {
            for (int i = 0; i < run.count(); i++) {
              target.setAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, offset / Long.BYTES + i, epoch);
            }
          }
        };
    EpochBatches batches = EpochBatches.of(store, OrderOptions.of(2));
    for (long epoch = 0; epoch < 3; epoch++) {
      for (BatchPlan<BatchView> plan : rest(batches, batches.start().atEpoch(epoch))) {
        MemorySegment target = MemorySegment.ofArray(new long[(int) plan.hostWrites().bytes() / 8]);
        plan.hostWrites().writers().forEach(writer -> writer.write(target));
        assertThat(target.getAtIndex(ValueLayout.JAVA_LONG_UNALIGNED, 0)).isEqualTo(epoch);
      }
    }
  }
}
