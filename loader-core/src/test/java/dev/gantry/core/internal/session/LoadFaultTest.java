// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.FaultyFileCalls.Shortens;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Loads that fail, are cancelled or are interrupted: the failure names the first cause, and no
/// resource is left.
@ExtendWith(NoLeaks.class)
class LoadFaultTest {
  private static final int BLOCKS = 100;

  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final GantrySession gantry = GantrySession.open(calls);

  @TempDir Path folder;
  private Path file;
  private List<ExtentRequest> wanted;

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("weights"), 7, BLOCKS * 4096);
    wanted = List.of(new ExtentRequest(new Extent(file, 0, BLOCKS * 4096L), 8));
  }

  /// Options with one request for each block.
  private static TransferOptions options(int threads) {
    return TransferOptions.defaults()
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(4096))
        .withThreads(threads)
        .withCachePolicy(CachePolicy.BUFFERED);
  }

  private Failure failureOf(TransferOptions options) {
    return catchThrowableOfType(
            TransferException.class, () -> gantry.load(wanted, Device.HOST, options))
        .failure();
  }

  /// Waits until a reader has ended its job; the pool then keeps its thread for the next job.
  private static void awaitIdle(Thread thread) {
    while (thread.isAlive() && thread.getState() != Thread.State.TIMED_WAITING) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void interruptsAndShortReadsGoUnnoticed(long seed) {
    calls
        .seeded(Function.PREAD, seed, 5, new Fails(Errno.EINTR))
        .seeded(Function.PREAD, seed, 3, new Shortens(1000));
    try (Loaded loaded = gantry.load(wanted, Device.HOST, options(4))) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).as("seed %s", seed).isEmpty();
    }
  }

  @ParameterizedTest
  @EnumSource
  void aFileThatShrinksAfterItWasOpened(CachePolicy policy) {
    calls.at(Function.PREAD, 3, new After(() -> truncate(8 * 4096)));
    assertThatThrownBy(() -> gantry.load(wanted, Device.HOST, options(1).withCachePolicy(policy)))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("changed-meanwhile");
    assertThat(calls.count(Function.PREAD)).isEqualTo(3);
  }

  private void truncate(long length) {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
      channel.truncate(length);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void aFileThatIsTooShortIsFoundBeforeAnythingIsAllocated() {
    truncate(BLOCKS * 4096 - 5);
    assertThat(failureOf(options(1))).isEqualTo(new Failure.EndOfFile(5));
    assertThat(calls.count(Function.PREAD)).isZero();
  }

  @Test
  void oneFileOfSeveralThatCannotBeOpened() {
    List<ExtentRequest> more = new ArrayList<>(wanted);
    more.add(new ExtentRequest(new Extent(folder.resolve("missing"), 0, 1), 1));
    assertThatThrownBy(() -> gantry.load(more, Device.HOST, options(2)))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("missing")
        .hasMessageContaining("ENOENT");
  }

  @Test
  void aReaderThatFailsStopsTheOthersAndIsTheOneReported() {
    CompletableFuture<Thread> failed = new CompletableFuture<>();
    calls
        .at(Function.PREAD, 1, new After(() -> failed.complete(Thread.currentThread())))
        .at(Function.PREAD, 1, new Fails(Errno.EIO))
        // The other readers stay in their reads until the first reader has ended, and then fail
        // with an error of their own.
        .from(Function.PREAD, 2, new After(() -> awaitIdle(failed.join())))
        .from(Function.PREAD, 2, new Fails(Errno.ESTALE));
    assertThat(failureOf(options(4))).isEqualTo(Errno.failure(Errno.EIO.code()));
    assertThat(calls.count(Function.PREAD)).as("one read a reader at most").isBetween(1, 4);
  }

  @Test
  void nothingIsFreedWhileAReadIsUnderWay() throws Exception {
    CompletableFuture<Thread> failed = new CompletableFuture<>();
    CountDownLatch underWay = new CountDownLatch(1);
    CountDownLatch goOn = new CountDownLatch(1);
    calls
        .at(Function.PREAD, 1, new After(underWay::countDown))
        .at(Function.PREAD, 1, new After(() -> await(goOn)))
        .at(Function.PREAD, 2, new After(() -> await(underWay)))
        .at(Function.PREAD, 2, new After(() -> failed.complete(Thread.currentThread())))
        .at(Function.PREAD, 2, new Fails(Errno.EIO));
    try (ExecutorService caller = Executors.newSingleThreadExecutor()) {
      Future<Failure> load = caller.submit(() -> failureOf(options(2)));
      awaitIdle(failed.get());
      assertThat(load.isDone()).isFalse();
      assertThat(LiveResources.snapshot().slabs()).isEqualTo(1);
      assertThat(LiveResources.snapshot().openFiles()).isEqualTo(1);
      goOn.countDown();
      assertThat(load.get()).isEqualTo(Errno.failure(Errno.EIO.code()));
    }
  }

  @Test
  void cancelledBeforeItBegan() {
    Cancellation cancellation = new Cancellation();
    cancellation.cancel();
    assertThat(failureOf(options(4).withCancellation(cancellation)))
        .isEqualTo(new Failure.Cancelled());
    assertThat(calls.count(Function.PREAD)).isZero();
  }

  @Test
  void cancelledInMidWay() {
    Cancellation cancellation = new Cancellation();
    calls.at(Function.PREAD, 3, new After(cancellation::cancel));
    assertThat(failureOf(options(1).withCancellation(cancellation)))
        .isEqualTo(new Failure.Cancelled());
    assertThat(calls.count(Function.PREAD)).as("the one under way was the last").isEqualTo(3);
  }

  @Test
  void interruptedBeforeItBegan() {
    Thread.currentThread().interrupt();
    Failure failure = failureOf(options(2));
    assertThat(Thread.interrupted()).as("still interrupted").isTrue();
    assertThat(failure).isEqualTo(new Failure.Cancelled());
  }

  @Test
  void interruptedInMidWay() {
    Thread caller = Thread.currentThread();
    calls.at(
        Function.PREAD,
        2,
        new After(() -> {
          caller.interrupt();
          // The read continues until the caller, which waits for the load, has noticed the
          // interrupt.
          Latches.awaitThat(() -> !caller.isInterrupted());
        }));
    Failure failure = failureOf(options(1));
    assertThat(Thread.interrupted()).as("still interrupted").isTrue();
    assertThat(failure).isEqualTo(new Failure.Cancelled());
  }

  @Test
  void progressIsHeardOnTheCallersThreadAndEndsAtTheTotal() {
    CountDownLatch heard = new CountDownLatch(2);
    // The last read waits until the listener was called in mid-load.
    calls.at(Function.PREAD, BLOCKS, new After(() -> await(heard)));
    List<Long> heights = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    List<Long> totals = new ArrayList<>();
    TransferOptions options =
        options(2)
            .withProgress((done, total) -> {
              heights.add(done);
              totals.add(total);
              threads.add(Thread.currentThread());
              heard.countDown();
            });
    try (Loaded loaded = gantry.load(wanted, Device.HOST, options)) {
      assertThat(loaded.report().bytes()).isEqualTo(BLOCKS * 4096L);
    }
    assertThat(heights).isSorted().hasSizeGreaterThanOrEqualTo(3).endsWith(BLOCKS * 4096L);
    assertThat(totals).containsOnly(BLOCKS * 4096L);
    assertThat(threads).containsOnly(Thread.currentThread());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatTheListenerThrowsEndsTheTransferWhenItsReadersHaveEnded(boolean error) {
    CountDownLatch thrown = new CountDownLatch(1);
    CountDownLatch returned = new CountDownLatch(1);
    CompletableFuture<Boolean> early = new CompletableFuture<>();
    calls.at(
        Function.PREAD,
        1,
        new After(() -> {
          await(thrown);
          early.complete(within100Milliseconds(returned));
        }));
    Throwable mine = error ? new StackOverflowError("mine") : new IllegalStateException("mine");
    TransferOptions options =
        options(1)
            .withProgress((_, _) -> {
              thrown.countDown();
              switch (mine) {
                case Error e -> throw e;
                case RuntimeException e -> throw e;
                default -> throw new AssertionError(mine);
              }
            });
    assertThat(
            catchThrowable(() -> {
              try {
                gantry.load(wanted, Device.HOST, options);
              } finally {
                returned.countDown();
              }
            }))
        .isSameAs(mine);
    assertThat(early.join()).as("returned while a read was under way").isFalse();
    assertThat(calls.count(Function.PREAD)).isEqualTo(1);
  }

  /// Waits for a latch that a correct load never opens: the load cannot return while this read is
  /// in flight.
  private static boolean within100Milliseconds(CountDownLatch latch) {
    try {
      return latch.await(100, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @Test
  void aSecondLoadSucceedsWhereTheFirstFailed() {
    calls.at(Function.PREAD, 5, new Fails(Errno.EIO));
    assertThat(failureOf(options(2))).isEqualTo(Errno.failure(Errno.EIO.code()));
    try (Loaded loaded = gantry.load(wanted, Device.HOST, options(2))) {
      assertThat(TestFiles.firstDifference(loaded, wanted)).isEmpty();
    }
  }
}
