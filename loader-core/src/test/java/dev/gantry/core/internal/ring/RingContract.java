// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.ring.Recipes.Expected;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The rules for all rings, on every device: all bytes are exact and in order, no slot changes
/// while the consumer holds it, a failure is thrown in place of the batch that failed, and no
/// resource is left. The property `gantry.batches` sets how many batches a slow consumer reads,
/// for builds that have time for more.
@ExtendWith(NoLeaks.class)
abstract class RingContract {
  static final int BLOCK = Recipes.BLOCK;

  @TempDir Path folder;
  final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  final GantrySession gantry = Sessions.over(calls);
  private Recipes recipes;

  /// The device that holds the slots.
  abstract Device device();

  /// The transport that the ring must use; null lets the transfer engine choose.
  @Nullable Transport transport() {
    return null;
  }

  @BeforeEach
  void writeFiles() {
    recipes = new Recipes(folder);
  }

  @AfterEach
  void closeSession() {
    gantry.close();
  }

  TransferOptions transfer() {
    return TransferOptions.defaults()
        .withTransport(transport())
        .withThreads(3)
        .withLimits(PlanLimits.DEFAULT.withRequestBytes(Recipes.REQUEST_BYTES));
  }

  RingOptions options(int slots, TransferOptions transfer) {
    return new RingOptions(device(), slots, Recipes.SLOT_BYTES, Recipes.HOST_BYTES, transfer, true);
  }

  RingOptions options(int slots) {
    return options(slots, transfer());
  }

  /// A plan that reads one block of the file; the label is the block's number.
  static BatchPlan<Integer> block(Path file, int number) {
    return new BatchPlan<>(
        List.of(new Read(Location.of(file), (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
        HostWrites.NONE,
        List.of(),
        number);
  }

  /// A plan whose bytes a host writer makes.
  static BatchPlan<Integer> written(int label, HostWrites.HostWriter writer) {
    return new BatchPlan<>(List.of(), new HostWrites(0, 8, List.of(writer)), List.of(), label);
  }

  static BatchPlan<Integer> number(int number) {
    return written(number, target -> target.set(ValueLayout.JAVA_LONG, 0, number));
  }

  static <T> RingBatch<T> take(PrefetchRing<T> ring) {
    return ring.next().orElseThrow();
  }

  static void awaitSleep(Thread thread) {
    while (thread.getState() != Thread.State.WAITING) {
      assertThat(thread.isAlive()).isTrue();
      LockSupport.parkNanos(1_000_000);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6})
  void everyByteOfEveryBatchInOrder(long seed) {
    int slots = 2 + (int) (seed % 4);
    Batches<Expected> source = recipes.batches(150, seed);
    TransferOptions transfer = transfer().withThreads(1 + (int) (seed % 5));
    try (PrefetchRing<Expected> ring = gantry.ring(options(slots, transfer), source)) {
      for (int i = 0; i < 150; i++) {
        try (RingBatch<Expected> batch = take(ring)) {
          assertThat(batch.number()).isEqualTo(i);
          batch.label().check(batch);
        }
      }
      assertThat(ring.next()).isEmpty();
      assertThat(ring.next()).isEmpty();
      assertThat(ring.statistics().batches()).isEqualTo(150);
    }
    assertThat(source.asked()).as("seed %d", seed).isEqualTo(151);
    assertThat(source.closed()).isEqualTo(1);
  }

  /// Samples of all types and shapes. The results must be the same on every device and with every
  /// transport, bit for bit.
  @ParameterizedTest
  @ValueSource(ints = {2, 5})
  void normalisesSamplesAtAnyOffset(int slots) {
    int count = 150;
    Batches<Expected> source = new NormalizedRecipes(folder).batches(count, slots);
    try (PrefetchRing<Expected> ring = gantry.ring(options(slots), source)) {
      for (int i = 0; i < count; i++) {
        try (RingBatch<Expected> batch = take(ring)) {
          batch.label().check(batch);
        }
      }
      assertThat(ring.next()).isEmpty();
    }
  }

  /// The consumer checks each batch when it arrives, and again when the ring is far ahead.
  @Test
  void aSlowConsumerNeverSeesASlotChange() {
    int slots = 4;
    int count = Integer.getInteger("gantry.batches", 2_000);
    int blocks = 97;
    Path file = TestFiles.write(folder.resolve("blocks"), 77, blocks * BLOCK);
    byte[] bytes = TestFiles.bytes(77, blocks * BLOCK);
    long[] sums = new long[blocks];
    for (int i = 0; i < blocks; i++) {
      sums[i] = sum(Arrays.copyOfRange(bytes, i * BLOCK, (i + 1) * BLOCK));
    }
    Batches<Integer> source = new Batches<>(count, number -> block(file, number % blocks));
    Deque<RingBatch<Integer>> held = new ArrayDeque<>();
    try (PrefetchRing<Integer> ring = gantry.ring(options(slots), source)) {
      for (int i = 0; i < count; i++) {
        RingBatch<Integer> batch = take(ring);
        assertThat(batch.label()).isEqualTo(i % blocks);
        assertThat(sum(batch)).as("batch %d at first", i).isEqualTo(sums[batch.label()]);
        held.add(batch);
        if (held.size() == slots - 1) {
          RingBatch<Integer> eldest = held.remove();
          assertThat(sum(eldest)).as("batch %d", eldest.number()).isEqualTo(sums[eldest.label()]);
          eldest.close();
        }
      }
      held.forEach(RingBatch::close);
      assertThat(ring.next()).isEmpty();
      assertThat(ring.statistics().slotsReplaced()).isZero();
      assertThat(ring.statistics().transfer().reads()).isEqualTo(count);
      assertThat(ring.statistics().transfer().bytes()).isEqualTo((long) count * BLOCK);
    }
  }

  private static long sum(RingBatch<?> batch) {
    return sum(TestFiles.bytes(batch.region(0, BLOCK)));
  }

  private static long sum(byte[] bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    return crc.getValue();
  }

  @Test
  void asManyBatchesAheadAsThereAreSlotsAndNoMore() {
    int slots = 3;
    CountDownLatch ahead = new CountDownLatch(slots);
    AtomicReference<Integer> closed = new AtomicReference<>(0);
    Batches<Integer> source =
        new Batches<>(
            20,
            number -> {
              assertThat(number).isLessThan(slots + closed.get());
              ahead.countDown();
              return number(number);
            });
    try (PrefetchRing<Integer> ring = gantry.ring(options(slots), source)) {
      await(ahead);
      for (int i = 0; i < 20; i++) {
        RingBatch<Integer> batch = take(ring);
        assertThat(batch.label()).isEqualTo(i);
        closed.set(i + 1);
        batch.close();
      }
      assertThat(ring.next()).isEmpty();
      assertThat(ring.statistics().hostBytes()).isEqualTo(20 * 8);
    }
  }

  @Test
  void memoryIsBoundedAndTakenAtTheStart() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(4), new Batches<>(50, RingContract::number))) {
      RingBatch<Integer> first = take(ring);
      LiveResources.Snapshot before = LiveResources.snapshot();
      assertThat(before.hostBytes() + before.deviceBytes()).isEqualTo(4L * Recipes.SLOT_BYTES);
      first.close();
      for (int i = 1; i < 50; i++) {
        take(ring).close();
        assertThat(LiveResources.snapshot()).isEqualTo(before);
      }
    }
  }

  @Test
  void aFileIsOpenedOnceForAllBatches() {
    Path file = TestFiles.write(folder.resolve("blocks"), 77, 10 * BLOCK);
    Batches<Integer> source = new Batches<>(1000, number -> block(file, number % 10));
    TransferOptions transfer = transfer().withCachePolicy(CachePolicy.BUFFERED);
    try (PrefetchRing<Integer> ring = gantry.ring(options(3, transfer), source);
        Arena arena = Arena.ofConfined()) {
      // Without the file in the page cache, each attempt to map it would open it again.
      PageCache.keep(file, 0, 10 * BLOCK, arena);
      for (int i = 0; i < 1000; i++) {
        take(ring).close();
      }
      assertThat(ring.statistics().transfer().files())
          .extracting(report -> report.file())
          .containsExactly(Location.of(file));
    }
    boolean maps =
        !device().equals(Device.HOST) && (transport() == null || transport() == Transport.MAPPED);
    assertThat(calls.count(Function.OPEN)).isEqualTo(maps ? 2 : 1);
    if (transport() != Transport.COMPAT && !maps) {
      assertThat(calls.count(Function.PREAD)).isEqualTo(1000);
    }
  }

  @Test
  void aConsumerThatIsFasterSleeps() throws Exception {
    CountDownLatch goOn = new CountDownLatch(1);
    Batches<Integer> source = new Batches<>(1, number -> written(number, _ -> await(goOn)));
    try (PrefetchRing<Integer> ring = gantry.ring(options(2), source);
        ExecutorService executor = Executors.newSingleThreadExecutor()) {
      AtomicReference<Thread> consumer = new AtomicReference<>();
      CountDownLatch started = new CountDownLatch(1);
      Future<?> next =
          executor.submit(() -> {
            consumer.set(Thread.currentThread());
            started.countDown();
            take(ring).close();
          });
      await(started);
      awaitSleep(consumer.get());
      goOn.countDown();
      next.get(30, TimeUnit.SECONDS);
      assertThat(ring.statistics().waits()).isEqualTo(1);
      assertThat(ring.statistics().waited()).isPositive();
    }
  }

  @Test
  void readersThatAreFasterSleepAndSayThatTheyWereStalled() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(10, RingContract::number))) {
      for (int i = 0; i < 10; i++) {
        RingBatch<Integer> batch = take(ring);
        if (i < 8) {
          while (ring.statistics().stalls() <= i / 2) {
            LockSupport.parkNanos(1_000_000);
          }
        }
        batch.close();
      }
      assertThat(ring.statistics().stalls()).isBetween(4L, 10L);
    }
  }

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
    Path file = TestFiles.write(folder.resolve("short"), 1, 3 * BLOCK - 5);
    assertFailsAtTheFifth(
        withFifth(block(file, 2)),
        new TransferException("open", file.toString(), new Failure.EndOfFile(5)));
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

  @Test
  void viewsThatOutliveTheirBatchKeepTheirBytes() {
    int count = 40;
    Batches<Expected> source = recipes.batches(count, 9);
    List<RingBatch<Expected>> batches = new ArrayList<>();
    List<Region> views = new ArrayList<>();
    List<Runnable> shares = new ArrayList<>();
    Random random = new Random(5);
    int kept = 0;
    try (PrefetchRing<Expected> ring = gantry.ring(options(3), source)) {
      for (int i = 0; i < count; i++) {
        RingBatch<Expected> batch = take(ring);
        batch.label().check(batch);
        if (random.nextBoolean()) {
          kept++;
          Region view = batch.region(0, Recipes.SLOT_BYTES);
          views.add(view);
          shares.add(view.retain());
          batches.add(batch);
        }
        batch.close();
      }
      assertThat(ring.next()).isEmpty();
      assertThat(ring.statistics().slotsReplaced()).isEqualTo(kept).isPositive();
    }
    gantry.freeIdle();
    assertThat(LiveResources.snapshot().slabs()).isEqualTo(kept);
    for (int i = 0; i < kept; i++) {
      byte[] bytes = TestFiles.bytes(views.get(i));
      for (Recipes.Piece piece : batches.get(i).label().pieces()) {
        int from = Math.toIntExact(piece.offset());
        assertThat(Arrays.copyOfRange(bytes, from, from + piece.bytes().length))
            .isEqualTo(piece.bytes());
      }
      shares.get(i).run();
    }
  }

  @Test
  void aViewThatIsClosedInTimeCostsNothing() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(10, RingContract::number))) {
      for (int i = 0; i < 10; i++) {
        RingBatch<Integer> batch = take(ring);
        batch.region(0, 8).retain().run();
        batch.close();
      }
      assertThat(ring.statistics().slotsReplaced()).isZero();
    }
  }

  @Test
  void slotsThatAreGivenBackArePoisoned() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(1, RingContract::number))) {
      RingBatch<Integer> batch = take(ring);
      Region all = batch.region(0, Recipes.SLOT_BYTES);
      batch.close();
      settle();
      byte[] expected = new byte[Recipes.SLOT_BYTES];
      Arrays.fill(expected, (byte) 0xDB);
      assertThat(Arrays.mismatch(TestFiles.bytes(all), expected)).isEqualTo(-1);
    }
  }

  /// Waits for the device's queued work.
  void settle() {}

  @Test
  void regionsAreCopiedToArraysAsToNativeMemory() {
    RingOptions large = new RingOptions(device(), 2, 3 << 20, Recipes.HOST_BYTES, transfer(), true);
    try (PrefetchRing<Expected> ring = gantry.ring(large, recipes.batches(1, 1));
        RingBatch<Expected> batch = take(ring)) {
      Region all = batch.region(1, (3 << 20) - 1);
      byte[] array = new byte[(3 << 20) + 1];
      all.copyTo(MemorySegment.ofArray(array).asSlice(2));
      assertThat(Arrays.copyOfRange(array, 2, array.length)).isEqualTo(TestFiles.bytes(all));
      assertThat(array).startsWith(0, 0);
    }
  }

  @Test
  void aBatchSaysWhatIsAskedOfItInVain() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(1, RingContract::number))) {
      RingBatch<Integer> batch = take(ring);
      assertThat(batch.region(Recipes.SLOT_BYTES, 0).length()).isZero();
      for (long[] wrong :
          new long[][] {{-1, 1}, {0, -1}, {1, Recipes.SLOT_BYTES}, {Long.MAX_VALUE, 1}}) {
        assertThatThrownBy(() -> batch.region(wrong[0], wrong[1]))
            .isInstanceOf(MisuseException.class);
      }
      batch.close();
      assertThatThrownBy(() -> batch.region(0, 1))
          .isInstanceOf(MisuseException.class)
          .hasMessage("batch 0 is closed");
    }
  }

  @Test
  void batchesOfNothing() {
    Batches<Integer> source =
        new Batches<>(
            100, number -> new BatchPlan<>(List.of(), HostWrites.NONE, List.of(), number));
    try (PrefetchRing<Integer> ring = gantry.ring(options(2), source)) {
      for (int i = 0; i < 100; i++) {
        try (RingBatch<Integer> batch = take(ring)) {
          assertThat(batch.label()).isEqualTo(i);
        }
      }
      assertThat(ring.next()).isEmpty();
    }
  }

  @Test
  void noBatchAtAll() {
    try (PrefetchRing<Integer> ring =
        gantry.ring(options(2), new Batches<>(0, RingContract::number))) {
      assertThat(ring.next()).isEmpty();
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

  @Test
  void severalConsumersGetOtherBatches() throws Exception {
    int count = 400;
    try (PrefetchRing<Integer> ring =
            gantry.ring(options(5), new Batches<>(count, RingContract::number));
        ExecutorService executor = Executors.newFixedThreadPool(2)) {
      List<Future<List<Integer>>> consumers = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        consumers.add(executor.submit(() -> labels(ring)));
      }
      List<Integer> all = new ArrayList<>();
      for (Future<List<Integer>> consumer : consumers) {
        assertThat(consumer.get()).isSorted();
        all.addAll(consumer.get());
      }
      assertThat(all).hasSize(count).doesNotHaveDuplicates();
    }
  }

  private static List<Integer> labels(PrefetchRing<Integer> ring) {
    List<Integer> labels = new ArrayList<>();
    for (Optional<RingBatch<Integer>> next = ring.next(); next.isPresent(); next = ring.next()) {
      try (RingBatch<Integer> batch = next.get()) {
        labels.add(batch.label());
      }
    }
    return labels;
  }

  @ParameterizedTest
  @EnumSource
  void hotAndColdFiles(CachePolicy policy) {
    try (PrefetchRing<Expected> ring =
        gantry.ring(options(3, transfer().withCachePolicy(policy)), recipes.batches(20, 11))) {
      for (int i = 0; i < 20; i++) {
        if (i % 4 == 0) {
          recipes.files().forEach(PageCache::drop);
        }
        try (RingBatch<Expected> batch = take(ring)) {
          batch.label().check(batch);
        }
      }
    }
  }
}
