// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@ExtendWith(NoLeaks.class)
@Timeout(60)
class RemoteRingTest {
  private static final int BLOCK = 4096;
  private static final int BLOCKS = 20;
  private static final byte[] BYTES = TestFiles.bytes(3, BLOCKS * BLOCK);

  private final RangeServer server = new RangeServer();
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
    server.close();
  }

  private static Batches<Integer> blocks(Location file) {
    return new Batches<>(
        BLOCKS,
        number ->
            new BatchPlan<>(
                List.of(new Read(file, (long) number * BLOCK, BLOCK, BLOCK, 0, 0)),
                HostWrites.NONE,
                List.of(),
                number));
  }

  private PrefetchRing<Integer> ring(Location file) {
    RingOptions options =
        new RingOptions(Device.HOST, 3, BLOCK, 0, TransferOptions.defaults(), true);
    return session.ring(options, blocks(file));
  }

  private void checkBatches(Location file) {
    try (PrefetchRing<Integer> ring = ring(file)) {
      for (int i = 0; i < BLOCKS; i++) {
        try (RingBatch<Integer> batch = ring.next().orElseThrow()) {
          assertThat(TestFiles.bytes(batch.region(0, BLOCK)))
              .isEqualTo(Arrays.copyOfRange(BYTES, i * BLOCK, (i + 1) * BLOCK));
        }
      }
      assertThat(ring.next()).isEmpty();
    }
  }

  @Test
  void batchesComeOverHttp() {
    checkBatches(server.put("blocks", BYTES));
  }

  @Test
  void batchesComeFromAStoreOfTests() {
    checkBatches(MemoryStore.put("ring/blocks", BYTES));
  }

  /// The first read, which opens the file, may hang, too.
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void closingEndsRequestsThatHang(int answered) {
    Location file = server.put("blocks", BYTES);
    server.answer(number -> number < answered ? Answer.RIGHT : Answer.SILENT);
    PrefetchRing<Integer> ring = ring(file);
    Latches.awaitThat(() -> server.requests() > answered);
    long start = System.nanoTime();
    ring.close();
    assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(10));
  }

  /// The store has opened the file, but the ring does not use it yet.
  @Test
  void closingEndsTheReadsOfAFileThatIsBeingOpened() throws InterruptedException {
    Location file = server.put("blocks", BYTES);
    server.answer(number -> number < 1 ? Answer.RIGHT : Answer.SILENT);
    CountDownLatch opening = new CountDownLatch(1);
    CountDownLatch closing = new CountDownLatch(1);
    // The store already has the first block, from the opening of the file.
    Read second = new Read(file, BLOCK, BLOCK, BLOCK, 0, 0);
    BatchPlanSource<Integer> source =
        new BatchPlanSource<>() {
          @Override
          public Optional<BatchPlan<Integer>> next() {
            return Optional.of(new BatchPlan<>(List.of(second), HostWrites.NONE, List.of(), 1));
          }

          @Override
          public void opened(Location location, Object identity) {
            opening.countDown();
            await(closing);
          }
        };
    RingOptions options =
        new RingOptions(Device.HOST, 2, BLOCK, 0, TransferOptions.defaults(), true);
    PrefetchRing<Integer> ring = session.ring(options, source);
    await(opening);
    Thread closer = new Thread(ring::close);
    closer.start();
    // The closing thread then waits for the reader, and has cancelled the reads of all open files.
    RingContract.awaitSleep(closer);
    closing.countDown();
    assertThat(closer.join(Duration.ofSeconds(10))).isTrue();
  }
}
