// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Memory;
import dev.gantry.core.Metrics;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.TestFiles;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
class MetricsTest {
  private static final int LENGTH = 1 << 20;
  private static final int REQUEST = 64 << 10;

  @TempDir Path folder;

  private Loaded load(GantrySession session, String name, CachePolicy policy) {
    TransferOptions options =
        TransferOptions.defaults()
            .withLimits(new PlanLimits(REQUEST, 16 << 10, LENGTH))
            .withCachePolicy(policy);
    Extent whole = new Extent(folder.resolve(name), 0, LENGTH);
    return session.load(List.of(new ExtentRequest(whole, 8)), Device.HOST, options);
  }

  @Test
  void loadsAndTheirReads() {
    TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    try (GantrySession session = GantrySession.open()) {
      load(session, "weights", CachePolicy.BUFFERED).close();
      load(session, "weights", CachePolicy.DIRECT).close();
      assertThatThrownBy(() -> load(session, "missing", CachePolicy.BUFFERED))
          .isInstanceOf(TransferException.class);
      Metrics metrics = session.metrics();
      assertThat(metrics.loads()).isEqualTo(new Metrics.Loads(2, 1));
      Metrics.Reads reads = metrics.reads();
      assertThat(reads.requests()).isEqualTo(2 * LENGTH / REQUEST);
      assertThat(reads.bytes(Transport.HOST)).isEqualTo(2 * LENGTH);
      assertThat(reads.bytes(Transport.GDS)).isZero();
      assertThat(reads.hotBytes()).isEqualTo(LENGTH);
      assertThat(reads.coldBytes()).isEqualTo(LENGTH);
      assertThat(reads.unknownBytes()).isZero();
      assertThat(reads.fallbacks()).isZero();
    }
  }

  @Test
  void savesAndFilesThatAreAppendedTo() {
    try (Arena arena = Arena.ofShared();
        GantrySession session = GantrySession.open()) {
      MemorySegment bytes = arena.allocate(LENGTH, 4096);
      session.write(
          List.of(
              new NewFile(folder.resolve("one"), List.of(new Memory.OnHost(bytes))),
              new NewFile(folder.resolve("two"), List.of(new Memory.OnHost(bytes)))),
          WriteOptions.defaults());
      assertThatThrownBy(() ->
              session.write(
                  List.of(
                      new NewFile(
                          folder.resolve("none").resolve("one"),
                          List.of(new Memory.OnHost(bytes)))),
                  WriteOptions.defaults()))
          .isInstanceOf(TransferException.class);
      try (AppendedFile file = session.append(folder.resolve("three"))) {
        file.append(bytes);
        AppendedFile.commit(List.of(file));
      }
      Metrics.Saves saves = session.metrics().saves();
      assertThat(saves.completed()).isEqualTo(1);
      assertThat(saves.failed()).isEqualTo(1);
      assertThat(saves.files()).isEqualTo(3);
      assertThat(saves.bytes(Transport.HOST)).isEqualTo(3 * LENGTH);
    }
  }

  @Test
  void sessionsCountForThemselvesAndHoldingsAreOfTheProcess() {
    TestFiles.write(folder.resolve("weights"), 1, LENGTH);
    try (GantrySession session = GantrySession.open();
        Session other = Session.open();
        Loaded _ = load(session, "weights", CachePolicy.BUFFERED)) {
      assertThat(other.metrics().loads()).isEqualTo(new Metrics.Loads(0, 0));
      assertThat(other.metrics().batches()).isEqualTo(new Metrics.Batches(0, 0, Duration.ZERO));
      assertThat(other.metrics().holdings()).isEqualTo(session.metrics().holdings());
      assertThat(other.metrics().holdings().hostBytes()).isGreaterThanOrEqualTo(LENGTH);
    }
  }

  @Test
  void theProcessesOwnSessionStaysOpen() {
    assertThat(Session.shared()).isSameAs(GantrySession.shared());
    assertThatThrownBy(() -> Session.shared().close())
        .isInstanceOf(MisuseException.class)
        .hasMessage("the process's own session stays open; open one to close it");
  }
}
