// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.Gathers;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Rings whose batches a kernel fetches from registered files.
@Tag("gpu")
class MappedRingGpuTest extends DeviceRingContract {
  private static final int COUNT = 20;

  @Override
  Transport transport() {
    return Transport.MAPPED;
  }

  /// Each plan waits until another plan is being made.
  @Test
  void severalReadersPlanAtOnceAndBatchesComeInOrder() {
    Path file = TestFiles.write(folder.resolve("blocks"), 7, COUNT * BLOCK);
    byte[] bytes = TestFiles.bytes(7, COUNT * BLOCK);
    CountDownLatch planning = new CountDownLatch(2);
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          private int next;

          @Override
          public Optional<BatchPlan<Integer>> next() {
            return next == COUNT ? Optional.empty() : Optional.of(gathered(file, next++));
          }

          @Override
          public Optional<Supplier<BatchPlan<Integer>>> nextGathered() {
            if (next == COUNT) {
              return Optional.empty();
            }
            int number = next++;
            return Optional.of(() -> {
              planning.countDown();
              await(planning);
              return gathered(file, number);
            });
          }
        };
    try (PrefetchRing<Integer> ring = gantry.ring(options(4), source)) {
      requireAll(bytes, ring);
    }
  }

  /// The consumer takes the first batch only after two plans more than the ring has slots were
  /// made.
  @Test
  void batchesArePlannedBeforeThereIsASlotForThem() {
    Path file = TestFiles.write(folder.resolve("blocks"), 7, COUNT * BLOCK);
    CountDownLatch planned = new CountDownLatch(2 + 2);
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          private int next;

          @Override
          public Optional<BatchPlan<Integer>> next() {
            return nextGathered().map(Supplier::get);
          }

          @Override
          public Optional<Supplier<BatchPlan<Integer>>> nextGathered() {
            int number = next++;
            return number < COUNT
                ? Optional.of(() -> {
                  planned.countDown();
                  return gathered(file, number);
                })
                : Optional.empty();
          }
        };
    try (PrefetchRing<Integer> ring = gantry.ring(options(2), source)) {
      await(planned);
      requireAll(TestFiles.bytes(7, COUNT * BLOCK), ring);
    }
  }

  @Test
  void aBatchThatNoKernelFetchesIsRefused() {
    Path file = TestFiles.write(folder.resolve("blocks"), 7, BLOCK);
    BatchPlanSource<Integer> source = () -> Optional.of(block(file, 0));
    try (PrefetchRing<Integer> ring = gantry.ring(options(2), source)) {
      assertThatThrownBy(ring::next)
          .isInstanceOf(DeviceUnavailableException.class)
          .hasMessageContaining("transport mapped was asked for and cannot serve");
    }
  }

  private static void requireAll(byte[] bytes, PrefetchRing<Integer> ring) {
    for (int i = 0; i < COUNT; i++) {
      try (RingBatch<Integer> batch = take(ring)) {
        assertThat(batch.label()).isEqualTo(i);
        assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
            .isEqualTo(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
      }
    }
    assertThat(ring.next()).isEmpty();
  }

  private static BatchPlan<Integer> gathered(Path file, int number) {
    BatchPlan<Integer> byReads = block(file, number);
    Gathers.Builder gathers = new Gathers.Builder(1);
    gathers.add(Location.of(file), (long) number * BLOCK, BLOCK, 0);
    return new BatchPlan<>(
        byReads.reads(),
        byReads.hostWrites(),
        byReads.copies(),
        gathers.build(),
        List.of(),
        number,
        null);
  }
}
