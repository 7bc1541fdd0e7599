// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Rings whose files fail, with one read for each batch.
@ExtendWith(NoLeaks.class)
class RingFaultTest {
  private static final int BLOCK = Recipes.BLOCK;
  private static final int COUNT = 60;

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final GantrySession gantry = Sessions.over(calls);
  private Path file;

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("blocks"), 7, COUNT * BLOCK);
  }

  @AfterEach
  void close() {
    gantry.close();
  }

  private static RingOptions options(int slots, int threads) {
    TransferOptions transfer =
        TransferOptions.defaults().withThreads(threads).withCachePolicy(CachePolicy.BUFFERED);
    return new RingOptions(Device.HOST, slots, 4 * BLOCK, BLOCK, transfer, true);
  }

  private Batches<Integer> blocks() {
    return new Batches<>(COUNT, number -> RingContract.block(file, number));
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void interruptsAndShortReadsGoUnnoticed(long seed) {
    calls
        .seeded(Function.PREAD, seed, 5, new Fails(Errno.EINTR))
        .seeded(Function.PREAD, seed, 3, new Shortens(1000));
    byte[] bytes = TestFiles.bytes(7, COUNT * BLOCK);
    try (PrefetchRing<Integer> ring = gantry.ring(options(3, 3), blocks())) {
      for (int i = 0; i < COUNT; i++) {
        try (RingBatch<Integer> batch = RingContract.take(ring)) {
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .as("seed %d", seed)
              .isEqualTo(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
        }
      }
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 10, COUNT})
  void anErrorOfTheDiskFailsItsBatchAndSaysWhere(int nth) {
    calls.from(Function.PREAD, nth, new Fails(Errno.EIO));
    try (PrefetchRing<Integer> ring = gantry.ring(options(3, 1), blocks())) {
      for (int i = 0; i < nth - 1; i++) {
        RingContract.take(ring).close();
      }
      assertThatThrownBy(ring::next)
          .isInstanceOf(TransferException.class)
          .hasMessage(
              "pread failed: %s offset %d length 4096: errno 5 EIO: Input/output error",
              file, (nth - 1) * BLOCK);
    }
    assertThat(calls.count(Function.PREAD)).as("nothing more was read").isEqualTo(nth);
  }

  /// A writer that fails when the test lets it. Its reader sleeps after it has reported the
  /// failure to the ring.
  private static final class FailingWriter implements HostWrites.HostWriter {
    private final AtomicReference<Thread> reader = new AtomicReference<>();
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch mayFail = new CountDownLatch(1);
    private final String message;

    FailingWriter(String message) {
      this.message = message;
    }

    @Override
    public void write(MemorySegment target) {
      reader.set(Thread.currentThread());
      begun.countDown();
      await(mayFail);
      throw new IllegalStateException(message);
    }

    void awaitBegin() {
      await(begun);
    }

    void fail() {
      mayFail.countDown();
      RingContract.awaitSleep(reader.get());
    }
  }

  /// Batch 2 fails first, while batch 1 is being written; the consumer gets the failure of batch
  /// 1.
  @Test
  void theEarliestBatchThatFailsIsTheOneThrown() {
    FailingWriter earlier = new FailingWriter("of batch 1");
    FailingWriter later = new FailingWriter("of batch 2");
    Batches<Integer> source =
        new Batches<>(
            COUNT,
            number ->
                switch (number) {
                  case 1 -> RingContract.written(1, earlier);
                  case 2 -> RingContract.written(2, later);
                  default -> RingContract.number(number);
                });
    try (PrefetchRing<Integer> ring = gantry.ring(options(3, 2), source)) {
      RingContract.take(ring).close();
      earlier.awaitBegin();
      later.awaitBegin();
      later.fail();
      earlier.fail();
      assertThatThrownBy(ring::next).hasMessage("of batch 1");
    }
    assertThat(source.asked()).isLessThanOrEqualTo(4);
  }

  /// The second piece of the batch is in progress when the first piece fails. It also fails,
  /// before the consumer asks for the batch.
  @Test
  void theFirstFailureOfABatchIsTheOneThrown() {
    FailingWriter first = new FailingWriter("first");
    FailingWriter second = new FailingWriter("second");
    BatchPlan<Integer> plan =
        new BatchPlan<>(List.of(), new HostWrites(0, 8, List.of(first, second)), List.of(), 0);
    try (PrefetchRing<Integer> ring = gantry.ring(options(2, 2), new Batches<>(1, _ -> plan))) {
      first.awaitBegin();
      second.awaitBegin();
      first.fail();
      second.fail();
      Throwable failure = catchThrowable(ring::next);
      assertThat(failure).hasMessage("first");
      assertThat(catchThrowable(ring::next)).isSameAs(failure);
    }
  }

  @Test
  void nothingIsFreedWhileAReadIsUnderWay() throws Exception {
    CountDownLatch underWay = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    calls
        .at(Function.PREAD, 1, new After(underWay::countDown))
        .at(Function.PREAD, 1, new After(() -> await(goOn)));
    PrefetchRing<Integer> ring = gantry.ring(options(2, 1), blocks());
    await(underWay);
    Thread closer = Thread.ofPlatform().start(ring::close);
    Thread second = Thread.ofPlatform().start(ring::close);
    RingContract.awaitSleep(closer);
    RingContract.awaitSleep(second);
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(2);
    assertThat(LiveResources.snapshot().openFiles()).isEqualTo(1);
    goOn.countDown();
    closer.join();
    second.join();
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    assertThat(calls.count(Function.PREAD)).isEqualTo(1);
  }

  /// The time limit ends the test if the consumer waits for a reader that no longer exists.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Timeout(60)
  void anUndeclaredCheckedExceptionIsThrownInPlaceOfTheBatch(boolean whileMaking) {
    IOException mine = new IOException("mine");
    Batches<Integer> source =
        new Batches<>(
            COUNT,
            number -> {
              if (number == 2 && !whileMaking) {
                throw RingFaultTest.<RuntimeException>sneaky(mine);
              }
              return RingContract.written(
                  number,
                  _ -> {
                    if (number == 2) {
                      throw RingFaultTest.<RuntimeException>sneaky(mine);
                    }
                  });
            });
    try (PrefetchRing<Integer> ring = gantry.ring(options(3, 1), source)) {
      RingContract.take(ring).close();
      RingContract.take(ring).close();
      assertThatThrownBy(ring::next).isInstanceOf(IllegalStateException.class).hasCause(mine);
    }
  }

  static List<Throwable> failures() {
    return List.of(
        new IllegalStateException("mine"), new AssertionError("mine"), new IOException("mine"));
  }

  /// Throws a checked exception that the method does not declare, as code in other languages can.
  @SuppressWarnings("unchecked")
  private static <E extends Throwable> RuntimeException sneaky(Throwable failure) throws E {
    throw (E) failure;
  }

  @ParameterizedTest
  @MethodSource("failures")
  void aSourceThatFailsToCloseKeepsNothing(Throwable mine) {
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          @Override
          public Optional<BatchPlan<Integer>> next() {
            return Optional.empty();
          }

          @Override
          public void close() {
            throw RingFaultTest.<RuntimeException>sneaky(mine);
          }
        };
    PrefetchRing<Integer> ring = gantry.ring(options(2, 2), source);
    Throwable failure = catchThrowable(ring::close);
    assertThat(Stream.iterate(failure, Objects::nonNull, Throwable::getCause)).contains(mine);
    assertThat(LiveResources.snapshot()).isEqualTo(LiveResources.Snapshot.NOTHING);
    ring.close();
  }

  @ParameterizedTest
  @ValueSource(longs = {1L << 50, 1L << 57, Long.MAX_VALUE - BLOCK + 1})
  void memoryThatIsNotThereIsRefusedAtTheStart(long slotBytes) {
    Batches<Integer> source = blocks();
    RingOptions options =
        new RingOptions(Device.HOST, 64, slotBytes, 0, TransferOptions.defaults(), false);
    assertThatThrownBy(() -> gantry.ring(options, source))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("host memory");
    assertThat(source.closed()).isEqualTo(1);
    assertThat(source.asked()).isZero();
  }
}
