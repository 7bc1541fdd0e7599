// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.MisuseException;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

class HostRingTest extends RingContract {
  private static final int BLOCKS = 10;

  /// More batches than are read while a file of ten blocks is copied.
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

  /// @return how many
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
}
