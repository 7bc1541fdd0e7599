// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.ring.Recipes.Expected;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.PageCache;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// The rules for all rings, on every device: all bytes are exact and in order, and no slot changes
/// while the consumer holds it. The property `gantry.batches` sets how many batches a slow consumer
/// reads, for builds that have time for more.
abstract class RingContract extends RingEndContract {
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
