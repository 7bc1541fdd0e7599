// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.NoLeaks;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Processes that are killed while they save. `gantry.kills` sets the number of random kills, for
/// which a build has little time, and `gantry.seed` repeats those of an earlier run.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class StoreKillTest {
  private static final int LANES = 2;
  private static final int KILLS = Integer.getInteger("gantry.kills", 24);
  private static final long SEED = Long.getLong("gantry.seed", System.nanoTime());

  /// The longest time before a kill, in which a child makes about ten saves.
  private static final int LONGEST_MILLIS = 150;

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  private final GantrySession session = GantrySession.open();

  @AfterEach
  void close() {
    session.close();
  }

  private interface Lane {
    void run(int number) throws Exception;
  }

  /// Runs lanes on threads of their own, because most of the time is needed to start processes.
  private static void inLanes(Lane lane) throws Exception {
    try (ExecutorService threads = Executors.newFixedThreadPool(LANES)) {
      List<Future<?>> lanes = new ArrayList<>();
      for (int number = 0; number < LANES; number++) {
        int mine = number;
        lanes.add(
            threads.submit(() -> {
              lane.run(mine);
              return null;
            }));
      }
      for (Future<?> one : lanes) {
        one.get();
      }
    }
  }

  private void save(Path root, Name name, int kept) {
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(kept))) {
      store.save(name.unsaved(), TestCheckpoints.options());
    }
  }

  /// The children are killed before every step of each file, of the manifest and of the removal; a
  /// kill after a step is a kill before the next one. All children use one folder, so each finds
  /// what the one before has left.
  @Test
  void killedAtEveryStepOfTheProtocol() throws Exception {
    inLanes(lane -> {
      Path root = parent.resolve("lane" + lane);
      save(root, new Name(1, 0), 1);
      long step = 2;
      boolean reached = true;
      List<String> where = new ArrayList<>();
      for (int point = 1 + lane; reached; point += LANES) {
        reached = killAt(root, step, point, where);
        // This save is the next one after the kill, and the old checkpoint of the next child.
        step++;
        save(root, new Name(step, 0), 1);
        assertThat(TestCheckpoints.requireAllWhole(root, where.getLast()))
            .as(where.getLast())
            .containsExactly(new Name(step, 0));
        TestCheckpoints.requireNoLeftovers(root, where.getLast());
        step++;
      }
      assertThat(where).as("shards, indexes, manifest and removal").hasSizeGreaterThan(40 / LANES);
    });
  }

  /// @return whether the protocol has this point
  private static boolean killAt(Path root, long step, int point, List<String> points) {
    String where;
    try (SavingChild child = SavingChild.stopping(root, step, 1, point)) {
      where = child.line();
      assertThat(child.kill()).as(where).isEmpty();
    }
    points.add(where);
    Name old = new Name(step - 1, 0);
    Name saved = new Name(step, 0);
    List<Name> found = TestCheckpoints.requireAllWhole(root, where);
    if (where.equals(SavingChild.SAVED + step)) {
      assertThat(found).as(where).containsExactly(saved);
      return false;
    }
    assertThat(where).startsWith(SavingChild.AT + point + " ");
    assertThat(found).as(where).isIn(List.of(old), List.of(old, saved), List.of(saved));
    return true;
  }

  @Test
  void killedAtAnyTimeUnderLoad() throws Exception {
    System.out.println("StoreKillTest: -Dgantry.kills=" + KILLS + " -Dgantry.seed=" + SEED);
    inLanes(lane -> {
      Random random = new Random(SEED + lane);
      Path root = parent.resolve("load" + lane);
      save(root, new Name(1, 0), 1);
      long reported = 1;
      for (int kill = lane; kill < KILLS; kill += LANES) {
        // The first child may save once before its kill, however slow the machine is.
        reported =
            killSomeTime(root, random, reported, kill == lane, "seed " + SEED + ", kill " + kill);
      }
      assertThat(reported).as("some saves came to their end").isGreaterThan(1);
      save(root, new Name(reported + 1000, 0), 3);
      TestCheckpoints.requireNoLeftovers(root, "seed " + SEED);
    });
  }

  /// @param before the last step that a child has reported
  /// @param afterOne whether the child may save once before the kill
  /// @return the last reported step
  private static long killSomeTime(
      Path root, Random random, long before, boolean afterOne, String where) {
    int kept = random.nextInt(1, 4);
    long first = TestCheckpoints.steps(root).getLast() + 1;
    List<String> lines = new ArrayList<>();
    try (SavingChild child = SavingChild.looping(root, first, kept)) {
      assertThat(child.line()).as(where).isEqualTo(SavingChild.READY);
      if (afterOne) {
        lines.add(child.line());
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(random.nextInt(LONGEST_MILLIS)));
      lines.addAll(child.kill());
    }
    long reported = before;
    for (String line : lines) {
      // The kill may have cut the last line.
      if (line.matches(SavingChild.SAVED + "[0-9]+")) {
        reported = Math.max(reported, Long.parseLong(line.substring(SavingChild.SAVED.length())));
      }
    }
    List<Name> found = TestCheckpoints.requireAllWhole(root, where);
    long last = found.getLast().step();
    assertThat(last).as("what was reported is there: %s", where).isGreaterThanOrEqualTo(reported);
    // The remaining checkpoints have no gap.
    for (int back = 0; back < found.size(); back++) {
      assertThat(found).as(where).contains(new Name(last - back, 0));
    }
    if (last - first >= kept - 1) {
      assertThat(found).as(where).hasSizeGreaterThanOrEqualTo(kept);
    }
    return reported;
  }
}
