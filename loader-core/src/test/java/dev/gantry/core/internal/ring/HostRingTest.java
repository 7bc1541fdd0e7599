// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

@Tag("jdk-files")
class HostRingTest extends RingContract {
  private static final int BLOCKS = 10;

  /// More batches than the consumer reads while a file of ten blocks is copied.
  private static final int MOST = 1_000_000;

  private final AtomicReference<@Nullable Thread> asker = new AtomicReference<>();

  @Override
  Device device() {
    return Device.HOST;
  }

  private PrefetchRing<Integer> blocks(Runnable whenAsked) {
    Path file = TestFiles.write(folder.resolve("blocks"), 7, BLOCKS * BLOCK);
    return gantry.ring(
        options(2),
        new Batches<>(
            MOST,
            number -> {
              asker.set(Thread.currentThread());
              whenAsked.run();
              return block(file, number % BLOCKS);
            }));
  }

  private boolean thisThreadAsked() {
    return Thread.currentThread().equals(asker.get());
  }

  /// @return the number of batches that were taken
  private int takeUntilThisThreadAsks(PrefetchRing<Integer> ring) {
    byte[] bytes = TestFiles.bytes(7, BLOCKS * BLOCK);
    int taken = 0;
    while (!thisThreadAsked()) {
      try (RingBatch<Integer> batch = take(ring)) {
        int from = taken++ % BLOCKS * BLOCK;
        assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
            .isEqualTo(Arrays.copyOfRange(bytes, from, from + BLOCK));
      }
    }
    return taken;
  }

  @Test
  void shortBatchesOutOfCopiesAreGatheredByTheConsumer() {
    try (PrefetchRing<Integer> ring = blocks(() -> {})) {
      int taken = takeUntilThisThreadAsks(ring);
      try (RingBatch<Integer> first = take(ring);
          RingBatch<Integer> second = take(ring)) {
        assertThat(first.number()).isEqualTo(taken);
        assertThat(second.number()).isEqualTo(taken + 1);
      }
    }
  }

  @Test
  void theSourceMayNotAskItsRingOnTheConsumersThreadEither() {
    AtomicReference<@Nullable PrefetchRing<Integer>> asked = new AtomicReference<>();
    Runnable askBack =
        () -> {
          PrefetchRing<Integer> ring = asked.get();
          if (ring != null && thisThreadAsked()) {
            var _ = ring.next();
          }
        };
    try (PrefetchRing<Integer> ring = blocks(askBack)) {
      int taken = takeUntilThisThreadAsks(ring);
      asked.set(ring);
      assertThatThrownBy(
              () -> {
                for (int i = taken; i < MOST; i++) {
                  take(ring).close();
                }
              })
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("by its own source");
    }
  }

  /// Two readers plan at once: one gathers, and the other reads. Neither may take the other's
  /// plan, because a plan that has gathers only would be handed over without its bytes.
  @Test
  void batchesThatAreGatheredAndBatchesThatAreReadMix() {
    Path file = TestFiles.write(folder.resolve("mixed"), 7, Recipes.SLOT_BYTES);
    byte[] bytes = TestFiles.bytes(7, Recipes.SLOT_BYTES);
    int count = 4_000;
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          private int next;

          @Override
          public Optional<BatchPlan<Integer>> next() {
            return next == count ? Optional.empty() : Optional.of(gathered(file, next++).byReads());
          }

          @Override
          public Optional<Supplier<BatchPlan<Integer>>> nextGathered() {
            if (next == count) {
              return Optional.empty();
            }
            int number = next++;
            return Optional.of(() -> gathered(file, number));
          }
        };
    try (PrefetchRing<Integer> ring = gantry.ring(options(4), source)) {
      for (int i = 0; i < count; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          int length = batch.label();
          assertThat(TestFiles.bytes(batch.region(0, length)))
              .as("batch %d", i)
              .isEqualTo(Arrays.copyOf(bytes, length));
        }
      }
    }
  }

  /// Returns a plan with gathers only. Odd numbers have one row that is too long to gather; even
  /// numbers have many short rows, enough to wake the readers.
  private static BatchPlan<Integer> gathered(Path file, int number) {
    int row = number % 2 == 0 ? BLOCK : 5 * BLOCK;
    int length = number % 2 == 0 ? Recipes.SLOT_BYTES : row;
    Gathers.Builder gathers = new Gathers.Builder(length / row);
    List<Read> reads = new ArrayList<>();
    for (int at = 0; at < length; at += row) {
      gathers.add(Location.of(file), at, row, at);
      reads.add(new Read(Location.of(file), at, row, row, 0, at));
    }
    Gathers all = gathers.build();
    return new BatchPlan<>(
        List.of(),
        HostWrites.NONE,
        List.of(),
        all,
        List.of(),
        length,
        () -> new BatchPlan<>(reads, HostWrites.NONE, List.of(), all, List.of(), length, null));
  }

  @Test
  void aRingStaysOpenWhereItsSessionMayNotBeClosed() {
    Path file = TestFiles.write(folder.resolve("blocks"), 7, BLOCKS * BLOCK);
    AtomicBoolean refused = new AtomicBoolean();
    TransferOptions closing =
        TransferOptions.defaults()
            .withProgress((_, _) -> {
              assertThatThrownBy(gantry::close)
                  .isInstanceOf(MisuseException.class)
                  .hasMessageContaining("by a load of its own");
              refused.set(true);
            });
    List<ExtentRequest> wanted =
        List.of(new ExtentRequest(new Extent(Location.of(file), 0, BLOCK), 1));
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(BLOCKS, number -> block(file, number)))) {
      gantry.load(wanted, Device.HOST, closing).close();
      assertThat(refused).isTrue();
      take(ring).close();
    }
  }
}
