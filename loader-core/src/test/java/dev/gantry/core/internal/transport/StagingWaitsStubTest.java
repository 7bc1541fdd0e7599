// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static dev.gantry.testing.Latches.await;
import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.SourceReading;
import dev.gantry.core.internal.commit.WriteOperation;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.Latches;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import dev.gantry.testing.stub.StubControls;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// More readers and writers than the session has pairs of staging buffers.
@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StagingWaitsStubTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final int PAIRS = 16;
  private static final int READS = 200;

  /// The threads of a load or save, unless a test says otherwise.
  private static final int THREADS = 8;

  private static final int LENGTH = READS * BLOCK;
  private static final Device.Cuda DEVICE = new Device.Cuda(0);

  private enum User {
    LOAD,
    SAVE
  }

  @TempDir Path folder;
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final StubControls cuda = StubControls.cuda();
  private final TransferEngine engine = new TransferEngine(calls);
  private final StagingPool pool = engine.stagingPool(DEVICE);
  private final StagingPool.Share others = pool.share();
  private final List<StagingPool.Pair> taken = new ArrayList<>();
  private final ExecutorService executor = Executors.newCachedThreadPool();
  private final AtomicInteger names = new AtomicInteger();
  private Path file;

  @BeforeEach
  void writeFile() {
    file = TestFiles.write(folder.resolve("file"), 1, LENGTH);
    cuda.clear();
  }

  @AfterEach
  void close() {
    taken.forEach(others::giveBack);
    executor.close();
    engine.close();
  }

  private void takePairs(int count) {
    for (int i = 0; i < count; i++) {
      taken.add(requireNonNull(others.take(BLOCK, () -> false)));
    }
  }

  /// Waits until `count` threads wait for buffers. The method polls, because waiting threads
  /// signal nothing.
  private void awaitWaiting(int count) {
    Latches.awaitThat(() -> pool.waiting() >= count);
  }

  private static TransferOptions options(int threads) {
    return TransferOptions.defaults()
        .withLimits(new PlanLimits(BLOCK, 0, LENGTH))
        .withTransport(Transport.STAGED)
        .withCachePolicy(CachePolicy.BUFFERED)
        .withThreads(threads);
  }

  /// Loads the file with one read for each block, and compares the bytes.
  private TransferReport load(TransferOptions options) {
    ReadPlan plan =
        Planner.plan(List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1)), options.limits());
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DEVICE), LENGTH);
    try (Arena arena = Arena.ofConfined()) {
      TransferReport report =
          engine.transfer(
              plan.reads(),
              List.of(DEVICE),
              TransferEngine.Spread.ONE_DEVICE,
              () ->
                  plan.reads().stream()
                      .map(read -> new PlannedTransfer.Task(read, Target.of(slab), () -> {}))
                      .toList(),
              options);
      MemorySegment copy = arena.allocate(LENGTH);
      slab.copyToHost(0, copy, LENGTH);
      assertThat(copy.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(TestFiles.bytes(1, LENGTH));
      return report;
    } finally {
      slab.release();
    }
  }

  private void save(WriteOptions options) {
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DEVICE), LENGTH);
    try {
      Source part = new Memory.OnDevice(DEVICE, slab.address(), LENGTH);
      Path target = folder.resolve("saved" + names.incrementAndGet());
      new WriteOperation(engine, List.of(new NewFile(target, List.of(part))), options).run();
    } finally {
      slab.release();
    }
  }

  private Future<?> start(User user, Cancellation cancellation) {
    return start(user, THREADS, cancellation);
  }

  private Future<?> start(User user, int threads, Cancellation cancellation) {
    return executor.submit(() -> {
      switch (user) {
        case LOAD -> load(options(threads).withCancellation(cancellation));
        case SAVE ->
            save(
                WriteOptions.defaults()
                    .withThreads(threads)
                    .withRequestBytes(BLOCK)
                    .withTransport(Transport.STAGED)
                    .withCancellation(cancellation));
      }
    });
  }

  /// Returns how many threads of a user wait while it has no buffers. A load starts its readers
  /// only after it has its first pair.
  private static int waitingOf(User user) {
    return user == User.LOAD ? 1 : THREADS;
  }

  private static Failure failureOf(Future<?> future) throws InterruptedException {
    try {
      future.get();
    } catch (ExecutionException e) {
      if (e.getCause() instanceof TransferException failed) {
        return failed.failure();
      }
      throw new AssertionError(e);
    }
    throw new AssertionError("no failure");
  }

  @ParameterizedTest
  @EnumSource
  void waitingForABufferCanBeCancelled(User user) throws InterruptedException {
    takePairs(PAIRS);
    Cancellation cancellation = new Cancellation();
    Future<?> waiting = start(user, cancellation);
    awaitWaiting(waitingOf(user));
    cancellation.cancel();
    assertThat(failureOf(waiting)).isEqualTo(new Failure.Cancelled());
    assertThat(pool.waiting()).isZero();
  }

  /// A load allocates memory only after it got its first pair of buffers.
  @Test
  void aLoadThatWaitsForItsTurnHasTakenNoMemory() throws Exception {
    takePairs(PAIRS);
    ReadPlan plan =
        Planner.plan(
            List.of(new ExtentRequest(new Extent(file, 0, LENGTH), 1)), options(8).limits());
    AtomicInteger allocated = new AtomicInteger();
    Cancellation cancellation = new Cancellation();
    Future<?> waiting =
        executor.submit(() ->
            engine.transfer(
                plan.reads(),
                List.of(DEVICE),
                TransferEngine.Spread.ONE_DEVICE,
                () -> {
                  allocated.incrementAndGet();
                  return List.of();
                },
                options(8).withCancellation(cancellation)));
    awaitWaiting(1);
    assertThat(allocated).hasValue(0);
    cancellation.cancel();
    assertThat(failureOf(waiting)).isEqualTo(new Failure.Cancelled());
    assertThat(allocated).hasValue(0);
    assertThat(pool.waiting()).isZero();
  }

  /// The caller has no cancellation, so an interrupt is the only end of its wait.
  @Test
  void waitingForABufferCanBeInterrupted() {
    takePairs(PAIRS);
    DeviceSlab slab = DeviceSlab.allocate(CudaContext.of(DEVICE), BLOCK);
    Source source = new Memory.OnDevice(DEVICE, slab.address(), BLOCK);
    Thread caller = Thread.currentThread();
    try {
      for (Runnable action :
          List.<Runnable>of(
              () -> load(options(3)), () -> new SourceReading(engine).checksum(source))) {
        Future<?> _ =
            executor.submit(() -> {
              awaitWaiting(1);
              caller.interrupt();
            });
        assertThatThrownBy(action::run)
            .isInstanceOf(TransferException.class)
            .extracting(e -> ((TransferException) e).failure())
            .isEqualTo(new Failure.Cancelled());
        assertThat(Thread.interrupted()).as("still interrupted").isTrue();
        assertThat(pool.waiting()).isZero();
      }
    } finally {
      slab.release();
    }
  }

  @Test
  void readersWithoutABufferLeaveTheirReadsToOneThatHasOne() {
    takePairs(PAIRS - 1);
    calls.at(Function.PREAD, 1, new After(() -> awaitWaiting(7)));
    assertThat(load(options(8)).reads()).isEqualTo(READS);
    assertThat(cuda.calls("cuStreamCreate")).as("readers that staged").isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(ints = {17, 64})
  void moreReadersThanBuffersBringEverything(int threads) {
    AtomicBoolean everybodyIsThere = new AtomicBoolean();
    calls.from(
        Function.PREAD,
        1,
        new After(() -> {
          while (!everybodyIsThere.get()) {
            everybodyIsThere.compareAndSet(false, pool.waiting() == threads - PAIRS);
          }
        }));
    assertThat(load(options(threads)).reads()).isEqualTo(READS);
    assertThat(pool.waiting()).isZero();
  }

  /// The first load has every pair of buffers, and its reads continue only after the second user
  /// is done.
  @ParameterizedTest
  @EnumSource
  void aLoadThatHasAllBuffersGivesSomeToAnother(User second) throws Exception {
    CountDownLatch firstHasAll = new CountDownLatch(PAIRS);
    CountDownLatch secondWaits = new CountDownLatch(1);
    CountDownLatch secondIsDone = new CountDownLatch(1);
    // Marks the readers of the first load, which inherit its thread's class loader.
    ClassLoader first = new ClassLoader() {};
    calls.from(
        Function.PREAD,
        1,
        new After(() -> {
          if (first.equals(Thread.currentThread().getContextClassLoader())) {
            await(
                firstHasAll.getCount() > 0 ? countedDown(firstHasAll, secondWaits) : secondIsDone);
          }
        }));
    FutureTask<TransferReport> loading = new FutureTask<>(() -> load(options(64)));
    Thread loader = new Thread(loading);
    loader.setContextClassLoader(first);
    loader.start();
    await(firstHasAll);
    // With several threads, the last that has buffers may end while another is about to wait for
    // some,
    // which it then gets from the first load's next read.
    Future<?> other = start(second, 1, new Cancellation());
    awaitWaiting(64 - PAIRS + 1);
    secondWaits.countDown();
    other.get();
    secondIsDone.countDown();
    assertThat(loading.get().reads()).isEqualTo(READS);
  }

  private static CountDownLatch countedDown(CountDownLatch counted, CountDownLatch next) {
    counted.countDown();
    return next;
  }

  @Test
  void aFailureEndsTheWaitsOfTheSameLoad() {
    takePairs(PAIRS - 1);
    calls.at(
        Function.PREAD,
        1,
        new After(() -> {
          awaitWaiting(7);
          throw new IllegalStateException("mine");
        }));
    assertThatThrownBy(() -> load(options(8))).hasMessage("mine");
    assertThat(pool.waiting()).isZero();
  }

  /// Five users of eight threads each; some of them cancel.
  @Test
  void manyAtOnceWithCancellationsAreEachWholeOrCancelled() throws Exception {
    int each = 40;
    AtomicInteger cancelled = new AtomicInteger();
    List<Future<?>> threads = new ArrayList<>();
    for (int i = 0; i < 5; i++) {
      Random random = new Random(i);
      User user = i == 4 ? User.SAVE : User.LOAD;
      threads.add(
          executor.submit(() -> {
            for (int j = 0; j < each; j++) {
              Cancellation cancellation = new Cancellation();
              Future<?> one = start(user, cancellation);
              if (random.nextBoolean()) {
                for (int k = random.nextInt(100_000); k > 0; k--) {
                  Thread.onSpinWait();
                }
                cancellation.cancel();
              }
              try {
                one.get();
              } catch (ExecutionException e) {
                assertThat(e.getCause()).hasMessageContaining("cancelled");
                assertThat(cancellation.isCancelled()).isTrue();
                cancelled.incrementAndGet();
              }
            }
            return each;
          }));
    }
    for (Future<?> thread : threads) {
      assertThat(thread.get()).isEqualTo(each);
    }
    assertThat(cancelled.get()).isPositive();
    assertThat(pool.waiting()).isZero();
    takePairs(PAIRS);
  }
}
