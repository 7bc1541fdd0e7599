// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.events;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// The figures of disks, computed from made-up times whose figures are known.
@ExtendWith(NoLeaks.class)
class DiskSpeedsTest {
  private static final long MIB = 1 << 20;
  private static final long MILLI = 1_000_000;

  @TempDir private Path folder;

  /// Concurrent readers, each of which makes requests of 1 MiB one after the other.
  ///
  /// @param millis how long a request takes when no other request is in flight
  /// @param most how many requests the disk serves at once; further requests wait
  /// @param depth the expected depth
  @ParameterizedTest
  @CsvSource({
    "1, 1, 1, 1",
    "1, 8, 1, 1",
    "4, 4, 4, 4",
    "4, 2, 8, 2",
    "10, 8, 8, 8",
    "10, 8, 64, 8"
  })
  void depthIsBandwidthByLatencyBySize(long millis, int most, int readers, int depth) {
    DiskSpeeds speeds = new DiskSpeeds();
    int rounds = 10;
    // The first request is alone, as at the beginning of each load.
    speeds.begin(1, 0);
    speeds.end(1, 0, millis * MILLI, MIB);
    long now = millis * MILLI;
    long taken = millis * Math.ceilDiv(readers, most) * MILLI;
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < readers; i++) {
        speeds.begin(1, now);
      }
      for (int i = 0; i < readers; i++) {
        speeds.end(1, now, now + taken, MIB);
      }
      now += taken;
    }
    DiskSpeeds.Disk disk = speeds.disks().getFirst();
    assertThat(disk.requests()).isEqualTo(1L + (long) rounds * readers);
    assertThat(disk.busyNanos()).isEqualTo(now);
    assertThat(disk.bandwidth()).isEqualTo(disk.bytes() * 1e9 / now);
    // The lone first request lowers the bandwidth a little.
    assertThat(disk.depth()).isBetween(Math.max(1, depth - 1), depth);
  }

  @Test
  void timeWithoutRequestsDoesNotCount() {
    DiskSpeeds speeds = new DiskSpeeds();
    speeds.begin(1, 0);
    speeds.begin(1, 2 * MILLI);
    speeds.begin(2, 3 * MILLI);
    // This request lies within the time of the first request.
    speeds.end(1, 2 * MILLI, 5 * MILLI, MIB);
    speeds.end(1, 0, 10 * MILLI, MIB);
    speeds.end(2, 3 * MILLI, 11 * MILLI, MIB);
    speeds.begin(1, 100 * MILLI);
    speeds.end(1, 100 * MILLI, 104 * MILLI, MIB);
    DiskSpeeds.Disk disk = speeds.disks().getFirst();
    assertThat(disk.busyNanos()).isEqualTo(14 * MILLI);
    assertThat(disk.requestNanos()).isEqualTo(17 * MILLI);
    assertThat(disk.underWay()).isEqualTo(17.0 / 14);
    assertThat(disk.latency()).isEqualTo(17e-3 / 3);
    assertThat(speeds.disks()).hasSize(2);
  }

  @Test
  void requestsThatFailedOrCameAnotherWayAreNone() {
    DiskSpeeds speeds = new DiskSpeeds();
    speeds.begin(1, 0);
    speeds.end(1, 0, MILLI, 0);
    assertThat(speeds.disks()).isEmpty();
  }

  @Test
  void aLoadPastThePageCacheIsWatchedAndOneThroughItIsNot() {
    int length = 5_000_000;
    Path file = TestFiles.write(folder.resolve("file"), 1, length);
    List<ExtentRequest> all = List.of(new ExtentRequest(new Extent(file, 0, length), 1));
    TransferOptions options =
        TransferOptions.defaults().withLimits(PlanLimits.DEFAULT.withRequestBytes(MIB));
    try (GantrySession session = GantrySession.open()) {
      session.load(all, Device.HOST, options.withCachePolicy(CachePolicy.BUFFERED)).close();
      assertThat(session.disks()).isEmpty();
      long direct;
      try (Loaded loaded =
          session.load(all, Device.HOST, options.withCachePolicy(CachePolicy.DIRECT))) {
        direct = loaded.report().directBytes();
      }
      long watched = session.disks().stream().mapToLong(DiskSpeeds.Disk::bytes).sum();
      // The last request may end within a file's last block, which is read through the page cache.
      assertThat(watched).isBetween(Math.max(0, direct - MIB), direct);
    }
  }
}
