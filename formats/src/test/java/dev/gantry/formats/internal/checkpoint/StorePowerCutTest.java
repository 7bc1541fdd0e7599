// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.stub.FaultyLibc;
import dev.gantry.testing.stub.FaultyLibc.Loss;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Processes below whose system calls the power is cut: the folder loses the changes that they had
/// not synchronised. [StoreCrashTest] checks the same with recorded calls and more kinds of loss.
///
/// `-Dgantry.kills=1000` tries every change of a save with every loss; `gantry.seed` repeats the
/// choices of an earlier run.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class StorePowerCutTest {
  private static final int IN_A_BUILD = 4;
  private static final int CUTS = Integer.getInteger("gantry.kills", IN_A_BUILD);
  private static final long SEED = Long.getLong("gantry.seed", System.nanoTime());
  private static final int CUT = 9;
  private static final String CHANGES = "changes ";

  @TempDir Path parent;
  private Path root;
  private long step = 1;

  @BeforeEach
  void saveTheFirst() throws IOException {
    parent = parent.toRealPath();
    root = parent.resolve("checkpoints");
    save();
  }

  private void save() {
    try (GantrySession session = GantrySession.open();
        CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(1))) {
      store.save(new Name(step, 0).unsaved(), TestCheckpoints.options());
    }
  }

  /// The program's arguments are the folder, the step, the number of the change before which the
  /// power is cut, and the loss. With 0 as the number, the power is cut after the save.
  static final class SavesOnce {
    private SavesOnce() {}

    public static void main(String[] arguments) {
      FaultyLibc libc = FaultyLibc.preloaded();
      Loss loss = Loss.valueOf(arguments[3]);
      libc.cut(Long.parseLong(arguments[2]), loss);
      try (GantrySession session = GantrySession.open();
          CheckpointStore store =
              TestCheckpoints.open(session, Path.of(arguments[0]), TestCheckpoints.last(1))) {
        store.save(new Name(Long.parseLong(arguments[1]), 0).unsaved(), TestCheckpoints.options());
        System.out.println(CHANGES + libc.changes());
        System.out.flush();
        libc.cutNow(loss);
      }
    }
  }

  /// Saves the next step.
  ///
  /// @return the number of changes of the folder; 0 if the power was cut before the end of the
  ///     save
  private long cut(long nth, Loss loss) {
    step++;
    ChildJvm.Result result =
        ChildJvm.run(
            "128m",
            FaultyLibc.environment(parent),
            SavesOnce.class,
            root.toString(),
            Long.toString(step),
            Long.toString(nth),
            loss.name());
    assertThat(result.exit()).as("%s", result).isEqualTo(CUT);
    return result
        .out()
        .lines()
        .filter(line -> line.startsWith(CHANGES))
        .mapToLong(line -> Long.parseLong(line.substring(CHANGES.length())))
        .findFirst()
        .orElse(0);
  }

  @ParameterizedTest
  @EnumSource
  void whatWasSavedStaysWhateverIsLost(Loss loss) {
    assertThat(cut(0, loss)).isPositive();
    assertThat(TestCheckpoints.requireAllWhole(root, loss.toString())).contains(new Name(step, 0));
  }

  @Test
  void aSaveThatIsCutOffIsWholeOrAbsent() {
    System.out.println("StorePowerCutTest: -Dgantry.kills=" + CUTS + " -Dgantry.seed=" + SEED);
    Random random = new Random(SEED);
    long changes = cut(0, Loss.EVERYTHING);
    List<Loss> losses = List.of(Loss.values());
    long all = losses.size() * changes;
    for (long i = 0; i < Math.min(CUTS, all); i++) {
      long point = CUTS < all ? random.nextLong(all) : i;
      Loss loss = losses.get((int) (point % losses.size()));
      long nth = 1 + point / losses.size();
      boolean ended = cut(nth, loss) > 0;
      String where = "lost " + loss + " before change " + nth + " of " + changes;
      List<Name> found = TestCheckpoints.requireAllWhole(root, where);
      Name old = new Name(step - 1, 0);
      Name saved = new Name(step, 0);
      if (ended) {
        assertThat(found).as(where).contains(saved);
      } else {
        assertThat(found).as(where).isIn(List.of(old), List.of(old, saved), List.of(saved));
      }
      step++;
      save();
      TestCheckpoints.requireNoLeftovers(root, where);
    }
  }
}
