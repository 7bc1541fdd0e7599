// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A reader that lists and reads while a saver saves and removes always finds a checkpoint, and
/// finds it complete.
@ExtendWith(NoLeaks.class)
class StoreConcurrencyTest {
  private static final int SAVES = 200;

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  @Test
  void readersNeverFindLessThanACheckpoint() throws Exception {
    Path root = parent.resolve("run");
    AtomicBoolean over = new AtomicBoolean();
    try (GantrySession session = GantrySession.open();
        CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(1));
        ExecutorService threads = Executors.newFixedThreadPool(2)) {
      store.save(TestCheckpoints.unsaved(0), TestCheckpoints.options());
      Future<Long> lists = threads.submit(until(over, () -> latest(root)));
      Future<Long> reads =
          threads.submit(
              until(
                  over,
                  () ->
                      store.reading(() -> {
                        TestCheckpoints.requireAllWhole(root, "while it is saved");
                        return latest(root);
                      })));
      try {
        for (int step = 1; step <= SAVES; step++) {
          store.save(TestCheckpoints.unsaved(step), TestCheckpoints.options());
        }
      } finally {
        over.set(true);
      }
      assertThat(lists.get()).isPositive();
      assertThat(reads.get()).isPositive();
      assertThat(TestCheckpoints.steps(root)).containsExactly((long) SAVES);
    }
  }

  private static long latest(Path root) {
    return CheckpointStore.list(GantrySession.shared(), root).latest().orElseThrow().sequence();
  }

  /// Asks for the latest checkpoint repeatedly; the number of its save must never decrease.
  ///
  /// @return how often it was asked for
  private static Callable<Long> until(AtomicBoolean over, Callable<Long> look) {
    return () -> {
      long looks = 0;
      long before = 0;
      while (!over.get() || looks == 0) {
        long latest = look.call();
        assertThat(latest).isGreaterThanOrEqualTo(before);
        before = latest;
        looks++;
      }
      return looks;
    };
  }
}
