// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.RangeServer.Answer;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// Several processes that share a cache, some of which are stopped or killed.
class RemoteCacheProcessTest extends RemoteCacheFixture {
  /// The number of processes that a test kills while they fill a cache.
  private static final int KILLS = Integer.getInteger("gantry.kills", 2);

  /// Both processes fetch blocks, and each reads the blocks that the other has fetched.
  @Test
  @Tag("beside")
  void twoProcessesShareACache() throws IOException, InterruptedException {
    CountDownLatch both = new CountDownLatch(2);
    // Each process gets only the file's version before both have asked for data.
    server.answer(number -> {
      both.countDown();
      if (number > 1) {
        awaitUninterruptibly(both);
      }
      return Answer.RIGHT;
    });
    Process first = CacheProgram.start(folder, file, SEED, LENGTH);
    Process second = CacheProgram.start(folder, file, SEED, LENGTH);
    assertThat(first.waitFor()).isZero();
    assertThat(second.waitFor()).isZero();
    assertThat(dataBytes(2)).isEqualTo(LENGTH);
  }

  /// A process that is stopped keeps its locks on the blocks that it fetches.
  @Test
  @Tag("beside")
  void aStoppedProcessDoesNotStopOthers() throws IOException, InterruptedException {
    CompletableFuture<Process> child = new CompletableFuture<>();
    server.answer(number -> {
      if (number == 1) {
        stop(child.join());
      }
      return Answer.RIGHT;
    });
    child.complete(CacheProgram.start(folder, file, SEED, LENGTH));
    Process stopped = child.join();
    try {
      awaitStopped(stopped);
      GantrySession session = session();
      checkLoad(session, file);
      checkLoad(session, file);
      close(session);
    } finally {
      int _ = stopped.destroyForcibly().waitFor();
    }
    GantrySession after = session();
    checkLoad(after, file);
    long fetched = server.bytes();
    checkLoad(after, file);
    assertThat(server.bytes()).as("all blocks are in the cache").isEqualTo(fetched + 1);
  }

  private static void stop(Process process) {
    try {
      assertThat(new ProcessBuilder("kill", "-STOP", "" + process.pid()).start().waitFor())
          .isZero();
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static void awaitStopped(Process process) throws IOException {
    Path status = Path.of("/proc", "" + process.pid(), "stat");
    while (!Files.readString(status).contains(") T ")) {
      LockSupport.parkNanos(1_000_000);
    }
  }

  /// @param request the number of the request for data that starts the countdown to the kill
  /// @param millis the time from that request to the kill
  private void killWhileItFills(long seed, int request, long millis)
      throws IOException, InterruptedException {
    byte[] bytes = TestFiles.bytes(seed, LENGTH);
    Location remote = server.put("data", bytes);
    CompletableFuture<Process> child = new CompletableFuture<>();
    server.answer(number -> {
      if (number == request) {
        LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(millis));
        Process _ = child.join().destroyForcibly();
      }
      return Answer.RIGHT;
    });
    child.complete(CacheProgram.start(folder, remote, seed, LENGTH));
    int _ = child.join().waitFor();
    server.answerAll(Answer.RIGHT);
    GantrySession session = session();
    assertThat(Arrays.equals(load(session, remote, LENGTH), bytes)).isTrue();
    long fetched = server.bytes();
    assertThat(Arrays.equals(load(session, remote, LENGTH), bytes)).isTrue();
    assertThat(server.bytes()).isEqualTo(fetched + 1);
    close(session);
  }

  @Test
  @Tag("beside")
  @Timeout(value = 20, unit = TimeUnit.MINUTES)
  void killedProcessesLeaveNothingWrong() throws IOException, InterruptedException {
    Random random = new Random(SEED);
    for (int kill = 0; kill < KILLS; kill++) {
      // Several requests are in flight: the server answers the others while this one waits.
      int request = 1 + kill % 2;
      killWhileItFills(100 + kill, request, random.nextInt(60));
    }
  }
}
