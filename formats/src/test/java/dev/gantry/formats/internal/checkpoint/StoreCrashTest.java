// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.checkpoint.TestCheckpoints.Name;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Loss;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

@ExtendWith(NoLeaks.class)
@Tag("beside")
class StoreCrashTest {
  private static final int SEEDS = 4;
  private static final int KEPT = 2;

  /// A checkpoint, and the number of steps that were made before it was reported as saved.
  private record Saved(int steps, Name name) {}

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  @TempDir(factory = MemoryFolder.class)
  Path scratch;

  private final GantrySession session = GantrySession.open();
  private final List<Saved> saved = new ArrayList<>();
  private Path tree;
  private RecordingFileCalls calls;

  @BeforeEach
  void makeTree() throws IOException {
    tree = Files.createDirectory(parent.resolve("tree"));
    calls = new RecordingFileCalls(Libc.INSTANCE, tree);
  }

  @AfterEach
  void close() {
    session.close();
  }

  /// @param folder the folder of the checkpoints in the tree
  private void save(String folder, Name... names) {
    try (GantrySession recorded = Sessions.over(calls);
        CheckpointStore store =
            TestCheckpoints.open(recorded, tree.resolve(folder), TestCheckpoints.last(KEPT))) {
      for (Name name : names) {
        store.save(name.unsaved(), TestCheckpoints.options());
        saved.add(new Saved(calls.steps().size(), name));
      }
    }
  }

  /// Checks the state after a power cut at every step, for every loss.
  private void everywhere(CrashReplay replay, String folder, List<Name> before) {
    List<Step> steps = calls.steps();
    for (int length = 0; length <= steps.size(); length++) {
      for (Loss loss : Loss.values()) {
        for (long seed = 0; seed < (loss == Loss.SOME ? SEEDS : 1); seed++) {
          Path state = scratch.resolve("state");
          replay.materialise(steps.subList(0, length), loss, seed, state);
          String last = length == 0 ? "none" : steps.get(length - 1).toString();
          String where = "lost " + loss + ", seed " + seed + ", after step " + length + ": " + last;
          requireOldOrNew(state.resolve(folder), length, before, where);
          // The smallest state and one random state suffice for this check.
          if (loss == Loss.EVERYTHING || (loss == Loss.SOME && seed == 0)) {
            requireNextSave(state.resolve(folder), where);
          }
          TestCheckpoints.delete(state);
        }
      }
    }
  }

  /// Requires all earlier checkpoints if the new one is missing, and otherwise the earlier ones
  /// that the retention keeps.
  private void requireOldOrNew(Path root, int length, List<Name> before, String where) {
    List<Name> old = new ArrayList<>(before);
    Optional<Name> next = Optional.empty();
    for (Saved one : saved) {
      if (one.steps() <= length) {
        old = after(old, one.name());
      } else if (next.isEmpty()) {
        next = Optional.of(one.name());
      }
    }
    List<Name> found = TestCheckpoints.requireAllWhole(root, where);
    if (next.isEmpty() || !found.contains(next.get())) {
      assertThat(found).as(where).isEqualTo(old);
      return;
    }
    List<Name> both = new ArrayList<>(old);
    both.removeIf(name -> name.step() == found.getLast().step());
    both.add(next.get());
    assertThat(both).as(where).containsAll(found);
    assertThat(found).as(where).containsAll(after(old, next.get())).endsWith(next.get());
  }

  /// Returns the checkpoints that the retention keeps after a save.
  private static List<Name> after(List<Name> old, Name saved) {
    List<Name> all = new ArrayList<>(old);
    all.removeIf(name -> name.step() == saved.step());
    all.add(saved);
    return all.subList(Math.max(0, all.size() - KEPT), all.size());
  }

  private void requireNextSave(Path root, String where) {
    Name next = new Name(77, 0);
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(KEPT))) {
      store.save(next.unsaved(), TestCheckpoints.options());
    }
    assertThat(TestCheckpoints.requireAllWhole(root, where)).as(where).endsWith(next);
    TestCheckpoints.requireNoLeftovers(root, where);
  }

  @Test
  void savesRemovalsAndAStepThatIsSavedAgain() throws IOException {
    try (CheckpointStore store =
        TestCheckpoints.open(session, tree.resolve("run"), TestCheckpoints.last(KEPT))) {
      store.save(TestCheckpoints.unsaved(1), TestCheckpoints.options());
      store.save(TestCheckpoints.unsaved(2), TestCheckpoints.options());
    }
    // The files of an earlier crash are removed under the same power cuts.
    Path leftover = Files.createDirectory(tree.resolve("run/gantry-step-5"));
    Files.write(leftover.resolve("model.safetensors"), new byte[100]);
    CrashReplay replay = CrashReplay.before(tree);
    save("run", new Name(3, 0), new Name(2, 1), new Name(3, 1), new Name(4, 0));
    assertThat(calls.steps().stream().filter(Step.Remove.class::isInstance).count())
        .as("four checkpoints, and the leftover")
        .isGreaterThan(4 * 6);

    everywhere(replay, "run", List.of(new Name(1, 0), new Name(2, 0)));
  }

  @Test
  void aFolderThatIsNotThereYet() {
    CrashReplay replay = CrashReplay.before(tree);
    save("a/b/run", new Name(1, 0), new Name(2, 0));
    everywhere(replay, "a/b/run", List.of());
  }

  /// A process ended after it had made the folder and before it had synchronised the parent.
  @Test
  void aFolderThatAnotherProgramHasJustMade() {
    CrashReplay replay = CrashReplay.before(tree);
    assertThat(calls.mkdir(tree.resolve("run"), 0777)).isZero();
    save("run", new Name(1, 0));
    everywhere(replay, "run", List.of());
  }

  /// A saver may have been killed between the removal of a manifest and its `fsync`. If the files
  /// went first, a power cut could bring back the manifest without them.
  @Test
  void leftoversGoAfterTheRemovalOfTheirManifestIsOnTheDisk() throws IOException {
    Path root = tree.resolve("run");
    try (CheckpointStore store = TestCheckpoints.open(session, root, TestCheckpoints.last(KEPT))) {
      var _ = store.save(TestCheckpoints.unsaved(1), TestCheckpoints.options());
    }
    Path checkpoint = root.resolve("gantry-step-1");
    Files.delete(StoreFolder.manifest(checkpoint));
    try (GantrySession recorded = Sessions.over(calls);
        CheckpointStore _ = TestCheckpoints.open(recorded, root, TestCheckpoints.last(KEPT))) {
      assertThat(checkpoint).doesNotExist();
    }
    List<Step> steps =
        calls.steps().stream()
            .filter(step -> step instanceof Step.Remove || step instanceof Step.SyncFolder)
            .toList();
    Path removed = Path.of("run/gantry-step-1");
    assertThat(steps.subList(0, steps.indexOf(new Step.SyncFolder(removed))))
        .noneMatch(Step.Remove.class::isInstance);
    assertThat(steps).endsWith(new Step.Remove(removed), new Step.SyncFolder(Path.of("run")));
  }
}
