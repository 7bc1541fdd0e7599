// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.Latches;
import dev.gantry.testing.MemoryStore;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Tag("gpu-stub")
@ExtendWith(NoLeaks.class)
@Timeout(60)
class RemoteRingStubTest {
  private static final int BLOCK = PlanLimits.BLOCK_BYTES;
  private static final int BATCHES = 40;

  private final RangeServer server = new RangeServer();
  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
    server.close();
  }

  private static RingOptions options(String device, int slots) {
    TransferOptions reads =
        TransferOptions.defaults()
            .withThreads(2)
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(Recipes.REQUEST_BYTES));
    return new RingOptions(
        Device.parse(device), slots, Recipes.SLOT_BYTES, Recipes.HOST_BYTES, reads, true);
  }

  @ParameterizedTest
  @CsvSource({"host, 1", "host, 2", "cuda:0, 3", "cuda:0, 4", "cuda:0, 5"})
  void everyByteOfEveryBatchComesInOrder(String device, int seed) {
    Recipes recipes = Recipes.remote((name, bytes) -> MemoryStore.put("recipes/" + name, bytes));
    try (PrefetchRing<Recipes.Expected> ring =
        session.ring(options(device, 2 + seed), recipes.batches(BATCHES, seed))) {
      for (int i = 0; i < BATCHES; i++) {
        try (RingBatch<Recipes.Expected> batch = ring.next().orElseThrow()) {
          assertThat(batch.number()).isEqualTo(i);
          batch.label().check(batch);
        }
      }
      assertThat(ring.next()).isEmpty();
    }
  }

  /// Returns a plan that reads ten blocks, with one request for each block.
  private static BatchPlan<Integer> blocks(Location file, int number) {
    return new BatchPlan<>(
        IntStream.range(0, 10)
            .mapToObj(block ->
                new Read(
                    file, (number * 10L + block) * BLOCK, BLOCK, BLOCK, 0, (long) block * BLOCK))
            .toList(),
        HostWrites.NONE,
        List.of(),
        number);
  }

  @ParameterizedTest
  @CsvSource({"host, HOST", "cuda:0, STAGED"})
  void twoThreadsHaveManyRequestsUnderWay(String device, Transport transport) {
    byte[] bytes = TestFiles.bytes(9, 10 * 10 * BLOCK);
    Location file = server.put("blocks", bytes);
    server.delay(30);
    try (PrefetchRing<Integer> ring =
        session.ring(options(device, 3), new Batches<>(10, number -> blocks(file, number)))) {
      for (int i = 0; i < 10; i++) {
        try (RingBatch<Integer> batch = ring.next().orElseThrow()) {
          byte[] there = TestFiles.bytes(batch.region(0, 10 * BLOCK));
          for (int at = 0; at < there.length; at++) {
            assertThat(there[at]).isEqualTo(bytes[i * 10 * BLOCK + at]);
          }
        }
      }
      assertThat(server.mostUnderWay()).isGreaterThan(10);
      TransferReport report = ring.statistics().transfer();
      assertThat(report.bytes(transport)).isEqualTo(bytes.length);
      assertThat(report.files().getFirst().transport()).isEqualTo(transport);
      assertThat(report.files().getFirst().reason()).endsWith("http files have no descriptor");
    }
  }

  /// The batches before the failed batch are complete, although all requests are in flight at the
  /// same time.
  @ParameterizedTest
  @CsvSource({"host", "cuda:0"})
  void aBatchThatFailsIsReportedInItsPlace(String device) {
    Location good = server.put("good", TestFiles.bytes(9, 20 * BLOCK));
    Location missing = server.missing("missing");
    server.delay(20);
    try (PrefetchRing<Integer> ring =
        session.ring(
            options(device, 4),
            new Batches<>(4, number -> blocks(number == 2 ? missing : good, number % 2)))) {
      for (int i = 0; i < 2; i++) {
        ring.next().orElseThrow().close();
      }
      assertThatThrownBy(ring::next)
          .isInstanceOfSatisfying(
              TransferException.class, e -> assertThat(e.isNotFound()).isTrue());
    }
  }

  @Test
  void closingARingOnADeviceEndsRequestsThatHang() {
    Location file = server.put("blocks", TestFiles.bytes(9, 100 * BLOCK));
    server.answer(number -> number == 0 ? Answer.RIGHT : Answer.SILENT);
    PrefetchRing<Integer> ring =
        session.ring(options("cuda:0", 3), new Batches<>(10, number -> blocks(file, number)));
    Latches.awaitThat(() -> server.requests() >= 12);
    ring.close();
    assertThat(server.requests()).isGreaterThanOrEqualTo(12);
  }
}
