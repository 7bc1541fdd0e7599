// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.copies;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StagingPoolStubTest {
  private static final int BLOCK = 4096;

  /// A pool for two pairs of one block.
  private final StagingPool pool =
      new StagingPool(CudaContext.of(new Device.Cuda(0)), 32, 4 * BLOCK);

  private final StagingPool.Share load = pool.share();
  private final StagingPool.Share other = pool.share();

  /// The common pool may have only one thread, so the test has threads of its own.
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void close() {
    threads.close();
  }

  private static StagingPool.@Nullable Pair now(StagingPool.Share share, long bytes) {
    return share.take(bytes, () -> false);
  }

  private void awaitWaiting() {
    Latches.awaitThat(() -> pool.waiting() > 0);
  }

  @Test
  void allPairsTogetherAreBoundedInBytes() {
    StagingPool.Pair first = requireNonNull(now(load, BLOCK));
    StagingPool.Pair second = requireNonNull(now(other, BLOCK));
    assertThat(now(other, BLOCK)).isNull();
    other.giveBack(second);
    assertThat(now(other, 2 * BLOCK)).isNull();
    second = requireNonNull(now(other, BLOCK));
    other.giveBack(second);
    load.giveBack(first);
  }

  @Test
  void onePairMayHaveAnySize() {
    StagingPool.Pair large = requireNonNull(now(load, 100 * BLOCK));
    assertThat(now(other, 1)).isNull();
    load.giveBack(large);
  }

  @Test
  void aSmallPairDoesNotOvertakeALargeOneThatWaits() {
    StagingPool.Pair small = requireNonNull(now(load, BLOCK));
    CompletableFuture<Void> large =
        CompletableFuture.runAsync(
            () -> other.giveBack(requireNonNull(other.take(2 * BLOCK, () -> true))), threads);
    awaitWaiting();
    assertThat(now(load, BLOCK)).isNull();
    load.giveBack(small);
    large.join();
  }

  @Test
  void aWaiterBehindOneThatGivesUpIsServed() {
    StagingPool.Pair held = requireNonNull(now(load, BLOCK));
    AtomicBoolean wanted = new AtomicBoolean(true);
    CompletableFuture<StagingPool.@Nullable Pair> large =
        CompletableFuture.supplyAsync(() -> other.take(2 * BLOCK, wanted::get), threads);
    awaitWaiting();
    CompletableFuture<Void> small =
        CompletableFuture.runAsync(
            () -> load.giveBack(requireNonNull(load.take(BLOCK, () -> true))), threads);
    Latches.awaitThat(() -> pool.waiting() >= 2);
    wanted.set(false);
    other.wake();
    assertThat(large.join()).isNull();
    small.join();
    load.giveBack(held);
  }

  /// The waiter's code may take a lock whose holder gives buffers back.
  @Test
  void whatAWaiterAsksIsAskedOutsideThePoolsLock() {
    StagingPool.Pair first = requireNonNull(now(load, 2 * BLOCK));
    AtomicBoolean locked = new AtomicBoolean();
    CompletableFuture<StagingPool.@Nullable Pair> second =
        CompletableFuture.supplyAsync(
            () ->
                other.take(
                    BLOCK,
                    () -> {
                      locked.compareAndSet(false, Thread.holdsLock(pool));
                      return true;
                    }),
            threads);
    awaitWaiting();
    other.wake();
    load.giveBack(first);
    other.giveBack(requireNonNull(second.join()));
    assertThat(locked).isFalse();
  }

  @Test
  void aPairThatIsNoLongerWantedGoesToTheNext() {
    StagingPool.Pair held = requireNonNull(now(load, 2 * BLOCK));
    AtomicBoolean wanted = new AtomicBoolean(true);
    CompletableFuture<StagingPool.@Nullable Pair> tired =
        CompletableFuture.supplyAsync(() -> other.take(2 * BLOCK, wanted::get), threads);
    awaitWaiting();
    wanted.set(false);
    load.giveBack(held);
    assertThat(tired.join()).isNull();
    other.giveBack(requireNonNull(now(other, 2 * BLOCK)));
  }
}
