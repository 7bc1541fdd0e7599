// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.http;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Extent;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.session.Loaded;
import dev.gantry.core.internal.store.RetryLimits;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.OwnProcess;
import dev.gantry.testing.RangeServer;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/// Loads from a server that fails, stalls, cuts answers short, changes the file and answers
/// slowly, and loads that are cancelled. Each load has the right bytes, or ends with one error,
/// soon after a cancellation, and leaves no resource.
///
/// `-Dgantry.remote.loads=1000` makes more loads, `-Dgantry.remote.seed=…` repeats a run.
@ExtendWith(NoLeaks.class)
@Timeout(3600)
@Tag("beside")
class RandomFaultsTest {
  private static final int LOADS = Integer.getInteger("gantry.remote.loads", 60);
  private static final long SEED = Long.getLong("gantry.remote.seed", System.nanoTime());
  private static final int MAX_PAUSES = 3000;
  private static final int FILES = 3;
  private static final int LENGTH = 300_007;
  private static final byte[] CHANGED = new byte[LENGTH];
  private static final int REQUEST = 16 << 10;

  /// The time within which a cancelled load must end.
  private static final Duration BUDGET = Duration.ofSeconds(5);

  private static final List<Answer> FAULTS =
      List.of(
          Answer.HALF,
          Answer.HALF_WITHOUT_LENGTH,
          Answer.UNAVAILABLE,
          Answer.CLOSED,
          Answer.STALLS,
          Answer.SILENT,
          Answer.DRIPS,
          Answer.ONE_BYTE_MORE,
          Answer.OTHER_ETAG,
          Answer.WHOLE_FILE,
          Answer.FORBIDDEN,
          Answer.NOT_FOUND);

  private final RangeServer server = new RangeServer();
  private final Random random = new Random(SEED);
  private int right;

  private static int threads() {
    return (int)
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread ->
                thread.getName().startsWith("gantry-open-")
                    || thread.getName().startsWith("gantry-reader-"))
            .count();
  }

  private static long sockets() throws IOException {
    return OwnProcess.descriptors().stream().filter(open -> open.startsWith("socket:")).count();
  }

  private static long requests() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("gantry-http-"))
        .count();
  }

  @Test
  void everyLoadIsRightOrOneError() throws Exception {
    // The JDK keeps one socket, with which it closes others.
    long sockets = sockets() + 1;
    try (server) {
      for (int i = 0; i < LOADS; i++) {
        long seed = random.nextLong();
        try (GantrySession session =
            GantrySession.open(
                Libc.INSTANCE,
                List.of(
                    new HttpStore(
                        new RetryLimits(3, Duration.ofMillis(5), Duration.ofMillis(600)))))) {
          load(session, new Random(seed));
        } catch (AssertionError | Exception e) {
          throw new AssertionError(
              "load " + i + " of -Dgantry.remote.seed=" + SEED + ": " + e.getMessage(), e);
        }
        assertThat(threads()).as("threads that still load").isZero();
      }
      assertThat(right).as("loads that were right").isGreaterThan(LOADS / 10);
    }
    // A request that its load did not wait for ends when its session is closed.
    for (int i = 0; (sockets() > sockets || requests() > 0) && i < MAX_PAUSES; i++) {
      TimeUnit.MILLISECONDS.sleep(10);
    }
    assertThat(sockets()).as("connections that stay").isLessThanOrEqualTo(sockets);
    assertThat(requests()).as("threads of requests that stay").isZero();
  }

  private void load(GantrySession session, Random random) throws Exception {
    List<byte[]> contents = new ArrayList<>();
    List<ExtentRequest> wanted = new ArrayList<>();
    for (int i = 0; i < FILES; i++) {
      contents.add(TestFiles.bytes(random.nextLong(), LENGTH));
      Location file = server.put("file" + i, contents.getLast());
      wanted.add(new ExtentRequest(new Extent(file, 0, LENGTH), 1));
    }
    double share = List.of(0.0, 0.02, 0.2, 1.0).get(random.nextInt(4));
    Answer fault = FAULTS.get(random.nextInt(FAULTS.size()));
    int changed = random.nextInt(4) == 0 ? random.nextInt(60) : -1;
    long[] chances = random.longs(1000).toArray();
    server.delay(random.nextInt(3) * 5L);
    server.answer(number -> {
      if (number == changed) {
        Location _ = server.put("file0", CHANGED);
      }
      double chance = (chances[number % chances.length] >>> 11) / (double) (1L << 53);
      return chance < share ? fault : Answer.RIGHT;
    });
    Cancellation cancellation = new Cancellation();
    TransferOptions options =
        TransferOptions.defaults()
            .withThreads(1 + random.nextInt(4))
            .withLimits(PlanLimits.DEFAULT.withRequestBytes(REQUEST))
            .withCancellation(cancellation);
    CompletableFuture<@Nullable GantryException> end =
        CompletableFuture.supplyAsync(() -> load(session, wanted, contents, options));
    if (random.nextInt(3) == 0) {
      try {
        GantryException _ = end.get(random.nextInt(40), TimeUnit.MILLISECONDS);
      } catch (TimeoutException _) {
        cancellation.cancel();
        GantryException failure = end.get(BUDGET.toMillis(), TimeUnit.MILLISECONDS);
        assertThat(failure == null || failure instanceof TransferException).isTrue();
        return;
      }
    }
    GantryException failure = end.get(60, TimeUnit.SECONDS);
    if (failure != null) {
      assertThat(((TransferException) failure).failure()).isInstanceOf(Failure.Remote.class);
      assertThat(failure.getMessage()).contains("file").doesNotContain("\n");
    }
  }

  /// @return the exception of a failed load; null if the load succeeded
  private @Nullable GantryException load(
      GantrySession session,
      List<ExtentRequest> wanted,
      List<byte[]> contents,
      TransferOptions options) {
    try (Loaded loaded = session.load(wanted, Device.HOST, options)) {
      for (int i = 0; i < FILES; i++) {
        byte[] there = TestFiles.bytes(loaded.regions().get(i));
        // The first file may have changed before it was opened.
        boolean same =
            Arrays.equals(there, contents.get(i)) || (i == 0 && Arrays.equals(there, CHANGED));
        assertThat(same).as("the bytes of one version of file " + i).isTrue();
      }
      right++;
      return null;
    } catch (GantryException e) {
      return e;
    }
  }
}
