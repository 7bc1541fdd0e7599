// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.batch.HostWrites;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Batches of remote files through a cache. From the second epoch on they come from a local file.
@ExtendWith(NoLeaks.class)
@Timeout(60)
class CachedRingTest {
  private static final int ROW = 64 << 10;
  private static final int ROWS = 40;
  private static final byte[] BYTES = TestFiles.bytes(5, ROWS * ROW);

  @TempDir private Path folder;

  private final RangeServer server = new RangeServer();
  private final GantrySession session = GantrySession.open();
  private final Location file = server.put("rows", BYTES);

  @BeforeEach
  void cache() {
    session.cacheRemoteFiles(folder, 1 << 30);
  }

  @AfterEach
  void close() {
    session.close();
    server.close();
  }

  private PrefetchRing<Integer> ring(int epochs, CachePolicy policy) {
    TransferOptions options = TransferOptions.defaults().withCachePolicy(policy);
    return session.ring(
        new RingOptions(Device.HOST, 3, ROW, 0, options, true),
        new Batches<>(
            epochs * ROWS,
            number ->
                new BatchPlan<>(
                    List.of(new Read(file, (long) (number % ROWS) * ROW, ROW, ROW, 0, 0)),
                    HostWrites.NONE,
                    List.of(),
                    number)));
  }

  private static void checkEpoch(PrefetchRing<Integer> ring) {
    for (int i = 0; i < ROWS; i++) {
      try (RingBatch<Integer> batch = ring.next().orElseThrow()) {
        assertThat(TestFiles.bytes(batch.region(0, ROW)))
            .isEqualTo(Arrays.copyOfRange(BYTES, i * ROW, (i + 1) * ROW));
      }
    }
  }

  private static TransferReport.FileReport only(PrefetchRing<Integer> ring) {
    return ring.statistics().transfer().files().getFirst();
  }

  /// The ring and the file stay open until the cache has the whole file.
  @ParameterizedTest
  @EnumSource
  void theSecondEpochIsReadFromTheDisk(CachePolicy policy) {
    try (PrefetchRing<Integer> ring = ring(4, policy)) {
      checkEpoch(ring);
      assertThat(server.bytes()).isEqualTo(1 + BYTES.length);
      server.answerAll(Answer.FORBIDDEN);
      checkEpoch(ring);
      checkEpoch(ring);
      assertThat(only(ring).cached()).isTrue();
      assertThat(only(ring).file()).isEqualTo(file);
      checkEpoch(ring);
      assertThat(ring.next()).isEmpty();
    }
    assertThat(server.requests()).isZero();
  }

  @Test
  void aRingOfTheSecondEpochAsksForTheVersionOnly() {
    try (PrefetchRing<Integer> ring = ring(1, CachePolicy.BY_RESIDENCY)) {
      checkEpoch(ring);
    }
    server.answer(number -> number == 0 ? Answer.RIGHT : Answer.FORBIDDEN);
    try (PrefetchRing<Integer> ring = ring(1, CachePolicy.BY_RESIDENCY)) {
      checkEpoch(ring);
      assertThat(only(ring).cached()).isTrue();
    }
    assertThat(server.requests()).isEqualTo(1);
  }
}
