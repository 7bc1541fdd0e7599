// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.commit.SnapshotLimits;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.checkpoint.BusyPolicy;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.checkpoint.SaveOutcome;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A folder of checkpoints, and queues whose writes the test holds up.
@ExtendWith(NoLeaks.class)
@Timeout(60)
abstract class SaveQueueFixture {
  /// Limits with memory for one snapshot, but not for two.
  static final SnapshotLimits ONE = new SnapshotLimits(0, 50_000);

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  final FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
  final Gate gate = new Gate(faulty);
  final GantrySession session = Sessions.over(gate);
  Path root;
  CheckpointStore store;

  @BeforeEach
  void open() {
    root = parent.resolve("run");
    store = TestCheckpoints.open(session, root, Retention.ALL);
  }

  @AfterEach
  void close() {
    store.close();
    session.close();
  }

  SaveQueue queue(BusyPolicy policy, SnapshotLimits limits) {
    return new SaveQueue(store, limits, policy, TestCheckpoints.options());
  }

  SaveQueue queue(BusyPolicy policy) {
    return queue(policy, SnapshotLimits.DEFAULT);
  }

  record Submitted(CompletableFuture<SaveOutcome> save) {}

  /// A call that runs on its own thread.
  record Call<T>(Thread thread, FutureTask<T> result) {
    static <T> Call<T> start(Callable<T> work) {
      FutureTask<T> result = new FutureTask<>(work);
      Thread thread = Thread.ofPlatform().start(result);
      return new Call<>(thread, result);
    }

    /// Waits until the call waits.
    void awaitWaiting() {
      while (thread.getState() != Thread.State.WAITING
          && thread.getState() != Thread.State.TIMED_WAITING) {
        assertThat(result).as("returned without waiting").isNotDone();
        assertThat(Thread.currentThread().isInterrupted()).as("out of time").isFalse();
        Thread.onSpinWait();
      }
    }
  }

  static long savedStep(CompletableFuture<SaveOutcome> save) {
    return switch (save.join()) {
      case SaveOutcome.Saved saved -> saved.checkpoint().step();
      case SaveOutcome.Skipped skipped -> throw new AssertionError(skipped);
    };
  }

  List<Long> wholeSteps() {
    return TestCheckpoints.requireAllWhole(root, "").stream().map(Name::step).toList();
  }

  /// A copier whose work waits for the test.
  static final class HeldCopier extends ThreadPoolExecutor {
    final CountDownLatch mayWork = new CountDownLatch(1);

    HeldCopier() {
      super(1, 1, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>());
    }

    @Override
    protected void beforeExecute(Thread thread, Runnable work) {
      try {
        mayWork.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }

  SaveQueue queue(BusyPolicy policy, SnapshotLimits limits, HeldCopier copier) {
    return new SaveQueue(store, limits, policy, TestCheckpoints.options(), copier);
  }
}
