// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.Recipes.Expected;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// How rings end: a failure is thrown in place of the batch that failed, and after a close, a
/// cancellation or an interruption no resource is left.
abstract class RingEndContract extends RingFixture {
  /// @param source a source that fails instead of planning batch 5
  void assertFailsAtTheFifth(Batches<Integer> source, Throwable expected) {
    int slots = 3;
    List<RingBatch<Integer>> batches = new ArrayList<>();
    try (PrefetchRing<Integer> ring = gantry.ring(options(slots), source)) {
      for (int i = 0; i < 5; i++) {
        RingBatch<Integer> batch = take(ring);
        assertThat(batch.label()).isEqualTo(i);
        batches.add(batch);
        if (batches.size() == slots - 1) {
          batches.removeFirst().close();
        }
      }
      Throwable failure = catchThrowable(ring::next);
      assertThat(failure).hasSameClassAs(expected).hasMessageContaining(expected.getMessage());
      assertThat(catchThrowable(ring::next)).isSameAs(failure);
      batches.forEach(RingBatch::close);
      assertThat(catchThrowable(ring::next)).isSameAs(failure);
      assertThat(ring.statistics().batches()).isEqualTo(5);
    }
    assertThat(source.asked()).isLessThanOrEqualTo(5 + slots);
    assertThat(source.closed()).isEqualTo(1);
  }

  private static Batches<Integer> withFifth(BatchPlan<Integer> fifth) {
    return new Batches<>(100, number -> number == 5 ? fifth : number(number));
  }

  @Test
  void aFileThatIsNotThereFailsItsBatch() {
    Path missing = folder.resolve("missing");
    assertFailsAtTheFifth(
        withFifth(block(missing, 0)),
        new TransferException(
            "open",
            missing.toString(),
            new Failure.Errno(2, "ENOENT", "No such file or directory")));
  }

  @Test
  void aFileThatIsTooShortFailsItsBatch() {
    int length = 3 * BLOCK - 5;
    Path file = TestFiles.write(folder.resolve("short"), 1, length);
    assertFailsAtTheFifth(
        withFifth(block(file, 2)),
        new TransferException(
            "open",
            file + ", whose " + length + " bytes end before offset " + 3 * BLOCK,
            new Failure.EndOfFile(5)));
  }

  @Test
  void aHostWriterThatThrowsFailsItsBatch() {
    IllegalStateException mine = new IllegalStateException("mine");
    assertFailsAtTheFifth(
        withFifth(
            written(
                5,
                _ -> {
                  throw mine;
                })),
        mine);
  }

  @Test
  void aSourceThatThrowsDoesSoInPlaceOfTheBatch() {
    IllegalStateException mine = new IllegalStateException("mine");
    assertFailsAtTheFifth(
        new Batches<>(
            100,
            number -> {
              if (number == 5) {
                throw mine;
              }
              return number(number);
            }),
        mine);
  }

  @Test
  void errorsAreThrownToo() {
    AssertionError mine = new AssertionError("mine");
    assertFailsAtTheFifth(
        withFifth(
            written(
                5,
                _ -> {
                  throw mine;
                })),
        mine);
  }

  @Test
  void aBatchPlanThatDoesNotFitIsAMisuse() {
    Location file = Location.of(folder.resolve("shard4"));
    int slot = Recipes.SLOT_BYTES;
    List<BatchPlan<Integer>> wrong =
        List.of(
            reads(new Read(file, 0, BLOCK, BLOCK, 1, 0)),
            reads(new Read(file, 0, BLOCK, BLOCK, 0, slot)),
            reads(new Read(file, 0, BLOCK, BLOCK, 0, -BLOCK)),
            reads(new Read(file, 0, BLOCK, BLOCK, 0, Long.MAX_VALUE - BLOCK + 1)),
            reads(new Read(file, 0, 2 * Recipes.REQUEST_BYTES, BLOCK, 0, 0)),
            reads(new Read(file, 0, BLOCK, BLOCK + 1, 0, 0)),
            reads(new Read(file, 1, BLOCK, BLOCK, 0, 0)),
            reads(new Read(file, -BLOCK, BLOCK, BLOCK, 0, 0)),
            writes(new HostWrites(0, Recipes.HOST_BYTES + 1, List.of())),
            writes(new HostWrites(slot - 5, 6, List.of())),
            copies(new Copy2D(0, 0, slot - 5, 0, 6, 1)),
            copies(new Copy2D(slot - 5, 0, 0, 0, 6, 1)),
            copies(new Copy2D(0, slot / 2, 0, 10, 10, 3)),
            copies(new Copy2D(0, Long.MAX_VALUE / 2, 0, 10, 10, 5)));
    for (BatchPlan<Integer> plan : wrong) {
      try (PrefetchRing<Integer> ring = gantry.ring(options(2), new Batches<>(1, _ -> plan))) {
        assertThatThrownBy(ring::next)
            .as("%s", plan)
            .isInstanceOf(MisuseException.class)
            .hasMessageStartingWith("batch 0 does not fit its slot: ");
      }
    }
  }

  private static BatchPlan<Integer> reads(Read read) {
    return new BatchPlan<>(List.of(read), HostWrites.NONE, List.of(), 0);
  }

  private static BatchPlan<Integer> writes(HostWrites hostWrites) {
    return new BatchPlan<>(List.of(), hostWrites, List.of(), 0);
  }

  private static BatchPlan<Integer> copies(Copy2D copy) {
    return new BatchPlan<>(List.of(), HostWrites.NONE, List.of(copy), 0);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 7})
  void closingEarlyLeavesNothing(int taken) {
    Batches<Expected> source = recipes.batches(1000, taken);
    List<RingBatch<Expected>> held = new ArrayList<>();
    PrefetchRing<Expected> ring = gantry.ring(options(4), source);
    for (int i = 0; i < taken; i++) {
      held.add(take(ring));
      if (held.size() == 3) {
        held.removeFirst().close();
      }
    }
    ring.close();
    ring.close();
    assertThat(source.closed()).isEqualTo(1);
    // The session frees the files and memory that it would keep for the next ring.
    gantry.freeIdle();
    assertThat(LiveResources.snapshot().openFiles()).isZero();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(held.size());
    assertThat(LiveResources.snapshot().pinnedBytes()).isZero();
    assertThat(Thread.getAllStackTraces().keySet())
        .noneMatch(thread -> thread.getName().startsWith("gantry-ring-"));
    assertThatThrownBy(ring::next)
        .isInstanceOf(MisuseException.class)
        .hasMessage("no more batches: the dataset or its session is closed");
    for (RingBatch<Expected> batch : held) {
      batch.label().check(batch);
      batch.close();
      batch.close();
    }
    assertThat(ring.statistics().batches()).isEqualTo(taken);
  }

  @Test
  void theSourceIsClosedWhenNothingIsMadeAnyMore() throws Exception {
    CountDownLatch making = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    Batches<Integer> source =
        new Batches<>(
            10,
            number ->
                written(
                    number,
                    _ -> {
                      making.countDown();
                      await(goOn);
                    }));
    PrefetchRing<Integer> ring = gantry.ring(options(2), source);
    await(making);
    Thread closer = Thread.ofPlatform().start(ring::close);
    awaitSleep(closer);
    assertThat(source.closed()).isZero();
    goOn.countDown();
    closer.join();
    assertThat(source.closed()).isEqualTo(1);
  }

  @Test
  void aConsumerThatWaitsIsThrownOutByAClose() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(1, number -> written(number, _ -> await(goOn))));
    AtomicReference<Throwable> thrown = new AtomicReference<>();
    Thread consumer = Thread.ofPlatform().start(() -> thrown.set(catchThrowable(ring::next)));
    awaitSleep(consumer);
    Thread closer = Thread.ofPlatform().start(ring::close);
    consumer.join();
    assertThat(thrown.get())
        .isInstanceOf(MisuseException.class)
        .hasMessage("no more batches: the dataset or its session is closed");
    goOn.countDown();
    closer.join();
    ring.close();
  }

  @Test
  void closingTheSessionClosesItsRings() {
    Batches<Expected> source = recipes.batches(1000, 1);
    PrefetchRing<Expected> ring = gantry.ring(options(3), source);
    PrefetchRing<Integer> other =
        gantry.ring(options(3), new Batches<>(1000, RingContract::number));
    RingBatch<Expected> batch = take(ring);
    gantry.close();
    assertThat(source.closed()).isEqualTo(1);
    assertThatThrownBy(other::next).isInstanceOf(MisuseException.class);
    batch.label().check(batch);
    batch.close();
    Batches<Integer> late = new Batches<>(1, RingContract::number);
    assertThatThrownBy(() -> gantry.ring(options(3), late)).isInstanceOf(MisuseException.class);
    assertThat(late.closed()).isEqualTo(1);
  }

  @Test
  void aSourceCannotCloseItsOwnRing() {
    AtomicReference<PrefetchRing<Integer>> own = new AtomicReference<>();
    CountDownLatch opened = new CountDownLatch(1);
    List<Throwable> refusals = new ArrayList<>();
    Batches<Integer> source =
        new Batches<>(
            1,
            number -> {
              await(opened);
              refusals.add(catchThrowable(() -> own.get().close()));
              refusals.add(catchThrowable(() -> own.get().next()));
              refusals.add(catchThrowable(gantry::close));
              return number(number);
            });
    try (PrefetchRing<Integer> ring = gantry.ring(options(2), source)) {
      own.set(ring);
      opened.countDown();
      take(ring).close();
      assertThat(refusals).hasSize(3).allMatch(MisuseException.class::isInstance);
    }
  }

  private static void assertCancelled(Throwable thrown) {
    assertThat(thrown).isInstanceOf(TransferException.class).hasMessageContaining("prefetch");
    assertThat(((TransferException) thrown).failure()).isEqualTo(new Failure.Cancelled());
  }

  @Test
  void aCancellationEndsTheRing() {
    Cancellation cancellation = new Cancellation();
    Batches<Integer> source = new Batches<>(1000, RingContract::number);
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(3, transfer().withCancellation(cancellation)), source)) {
      RingBatch<Integer> batch = take(ring);
      cancellation.cancel();
      assertCancelled(catchThrowable(ring::next));
      assertCancelled(catchThrowable(ring::next));
      batch.close();
    }
    assertThat(source.asked()).isLessThanOrEqualTo(3);
  }

  @Test
  void aCancellationWakesWhoWaits() throws Exception {
    Cancellation cancellation = new Cancellation();
    CountDownLatch goOn = new CountDownLatch(1);
    try (PrefetchRing<Integer> ring =
        gantry.ring(
            options(3, transfer().withCancellation(cancellation)),
            new Batches<>(1, number -> written(number, _ -> await(goOn))))) {
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      Thread consumer = Thread.ofPlatform().start(() -> thrown.set(catchThrowable(ring::next)));
      awaitSleep(consumer);
      cancellation.cancel();
      consumer.join();
      assertCancelled(thrown.get());
      goOn.countDown();
    }
  }

  @Test
  void cancelledBeforeItBegan() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    Batches<Integer> source = new Batches<>(10, RingContract::number);
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(3, transfer().withCancellation(cancellation)), source)) {
      assertCancelled(catchThrowable(ring::next));
    }
    assertThat(source.asked()).isZero();
    assertThat(source.closed()).isEqualTo(1);
  }

  @Test
  void anInterruptionEndsTheRing() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(3), new Batches<>(1, number -> written(number, _ -> await(goOn))))) {
      AtomicReference<Throwable> thrown = new AtomicReference<>();
      AtomicReference<Boolean> interrupted = new AtomicReference<>();
      Thread consumer =
          Thread.ofPlatform()
              .start(() -> {
                thrown.set(catchThrowable(ring::next));
                interrupted.set(Thread.interrupted());
              });
      awaitSleep(consumer);
      consumer.interrupt();
      consumer.join();
      assertCancelled(thrown.get());
      assertThat(interrupted.get()).as("still interrupted").isTrue();
      goOn.countDown();
      assertCancelled(catchThrowable(ring::next));
    }
  }
}
