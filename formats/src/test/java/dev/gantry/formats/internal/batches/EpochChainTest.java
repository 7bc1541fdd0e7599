// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class EpochChainTest {
  /// The epochs whose sources were closed, in the order of closing.
  private final List<Long> closed = new ArrayList<>();

  /// Epochs of one batch with two writers.
  private class OfOneBatch implements Batches {
    @Override
    public long slotBytes() {
      return 4096;
    }

    @Override
    public long hostBytes() {
      return 1;
    }

    @Override
    public OptionalLong batchesPerEpoch() {
      return OptionalLong.of(1);
    }

    @Override
    public DatasetState start() {
      return new DatasetState("order", 0, 0, "");
    }

    @Override
    public BatchPlanSource<BatchView> from(DatasetState state) {
      return new BatchPlanSource<>() {
        private boolean given;

        @Override
        public Optional<BatchPlan<BatchView>> next() {
          if (given) {
            return Optional.empty();
          }
          given = true;
          HostWrites made = new HostWrites(0, 1, List.of(_ -> {}, _ -> {}));
          BatchView label = new BatchView(1, List.of(), start().atEpoch(state.epoch() + 1));
          return Optional.of(new BatchPlan<>(List.of(), made, List.of(), label));
        }

        @Override
        public void close() {
          closed.add(state.epoch());
        }
      };
    }
  }

  private final EpochChain chain = chain(99);

  private EpochChain chain(long lastEpoch) {
    Batches batches = new OfOneBatch();
    return new EpochChain(batches, batches.start(), lastEpoch);
  }

  private static HostWrites.HostWriter maker(BatchPlan<BatchView> plan, int number) {
    return plan.hostWrites().writers().get(number);
  }

  @Test
  void anEpochIsClosedWhenAllOfItIsMade() {
    BatchPlan<BatchView> first = chain.next().orElseThrow();
    BatchPlan<BatchView> second = chain.next().orElseThrow();
    maker(first, 0).write(MemorySegment.NULL);
    maker(second, 0).write(MemorySegment.NULL);
    maker(second, 1).write(MemorySegment.NULL);
    assertThat(chain.next()).isPresent();
    assertThat(closed).as("one maker of the first has yet to run").containsExactly(1L);
    maker(first, 1).write(MemorySegment.NULL);
    assertThat(chain.next()).isPresent();
    assertThat(closed).containsExactly(1L, 0L);
    chain.close();
    assertThat(closed).containsExactly(1L, 0L, 2L, 3L);
  }

  @Test
  void noEpochIsKeptForLong() {
    for (int epoch = 0; epoch < 50; epoch++) {
      BatchPlan<BatchView> plan = chain.next().orElseThrow();
      assertThat(closed).hasSize(epoch);
      plan.hostWrites().writers().forEach(maker -> maker.write(MemorySegment.NULL));
    }
    chain.close();
    assertThat(closed).doesNotHaveDuplicates().hasSize(50);
  }

  @Test
  void epochsFollowUpToTheLast() {
    try (EpochChain three = chain(2)) {
      for (long epoch = 1; epoch <= 3; epoch++) {
        assertThat(three.next().orElseThrow().label().after().epoch()).isEqualTo(epoch);
      }
      assertThat(three.next()).isEmpty();
      assertThat(three.next()).isEmpty();
    }
    assertThat(closed).containsExactly(0L, 1L, 2L);
  }

  /// An endless training would look for a batch for ever.
  @Test
  void anEpochWithoutBatchesEndsTheChain() {
    AtomicInteger epochs = new AtomicInteger();
    Batches none =
        new OfOneBatch() {
          @Override
          public BatchPlanSource<BatchView> from(DatasetState state) {
            epochs.incrementAndGet();
            return new BatchPlanSource<>() {
              @Override
              public Optional<BatchPlan<BatchView>> next() {
                return Optional.empty();
              }

              @Override
              public void close() {}
            };
          }
        };
    EpochChain empty = new EpochChain(none, none.start(), 1000);
    assertThat(empty.next()).isEmpty();
    assertThat(epochs).hasValue(1);
    empty.close();
  }
}
