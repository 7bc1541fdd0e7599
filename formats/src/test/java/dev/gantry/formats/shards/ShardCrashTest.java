// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Power cuts at every step of writers. Afterwards there is no index, or all samples of the index
/// are there.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class ShardCrashTest {
  private static final int SEEDS = 3;
  private static final int SAMPLES = 7;

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  @TempDir(factory = MemoryFolder.class)
  Path scratch;

  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 1, SAMPLES);
  private final Map<String, byte[]> others = TestShards.values(TestShards.FIELDS, 9, 2);
  private Path tree;
  private RecordingFileCalls calls;
  private boolean othersWereRemoved;

  @BeforeEach
  void makeTree() throws IOException {
    tree = Files.createDirectory(parent.resolve("tree"));
    calls = new RecordingFileCalls(Libc.INSTANCE, tree);
  }

  @AfterEach
  void close() {
    session.close();
  }

  private ShardWriter writer(GantrySession recorded, Path root) {
    return ShardWriter.create(
        recorded, root.resolve("set"), TestShards.FIELDS, TestShards.options().withWriters(2));
  }

  private void write() {
    try (GantrySession recorded = Sessions.over(calls);
        ShardWriter writer = writer(recorded, tree)) {
      TestShards.append(writer, values, SAMPLES);
      writer.finish();
    }
  }

  /// @param done the number of steps before the set was reported as written
  private void everywhere(CrashReplay replay, int done) {
    List<Step> steps = calls.steps();
    for (int length = 0; length <= steps.size(); length++) {
      boolean reported = length >= done;
      replay.everyCrash(
          steps.subList(0, length),
          length,
          SEEDS,
          scratch,
          (where, root) -> {
            Optional<ShardSet> set = TestShards.present(root.resolve("set"));
            if (reported) {
              assertThat(set).as(where).isPresent();
            }
            set.ifPresentOrElse(
                present -> requireOneOfBoth(root, present, where), () -> requireNext(root, where));
          });
    }
  }

  /// The file systems that the replay models keep the order of entries, but others may not.
  private void requireIndexGoneBeforeShards() {
    Path set = Path.of("set");
    assertThat(calls.steps())
        .containsSubsequence(
            new Step.Rename(
                set.resolve("shards.json"), set.resolve(".gantry-unfinished/shards.json")),
            new Step.SyncFolder(set),
            new Step.Remove(set.resolve("shard-00000.bin")),
            new Step.SyncFolder(set),
            new Step.Remove(set.resolve(".gantry-unfinished/shards.json")));
  }

  private void requireOneOfBoth(Path root, ShardSet present, String where) {
    boolean isNew = present.samples() == SAMPLES;
    TestShards.requireWhole(
        root.resolve("set"),
        TestShards.FIELDS,
        isNew ? values : others,
        isNew ? SAMPLES : 2,
        where);
  }

  /// Requires that the next writer accepts the folder, unless it has a rest of the other set.
  private void requireNext(Path root, String where) {
    Path left = root.resolve("set/shard-00000.bin");
    if (othersWereRemoved
        && Files.exists(left)
        && !Files.exists(root.resolve("set/.gantry-unfinished/shards.json"))) {
      assertThatThrownBy(() -> writer(session, root))
          .as(where)
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining(left.toString());
      return;
    }
    try (ShardWriter writer = writer(session, root)) {
      TestShards.append(writer, values, 1);
      writer.finish();
    }
    TestShards.requireWhole(root.resolve("set"), TestShards.FIELDS, values, 1, where);
    assertThat(TestShards.names(root.resolve("set")))
        .as(where)
        .containsExactly("shard-00000.bin", "shards.json");
  }

  @Test
  void inANewFolder() {
    CrashReplay replay = CrashReplay.before(tree);
    write();
    everywhere(replay, calls.steps().size());
  }

  @Test
  void overWhatAnotherWriterLeft() throws IOException {
    Path left = Files.createDirectories(tree.resolve("set/.gantry-unfinished"));
    Files.write(left.resolve("shard-00000.bin"), new byte[9000]);
    Files.write(left.resolve("shard-00007.bin"), new byte[10]);
    Files.write(left.resolve(".gantry-0123456789abcdef.tmp"), new byte[10]);
    CrashReplay replay = CrashReplay.before(tree);
    write();
    assertThat(calls.steps().stream().filter(Step.Remove.class::isInstance))
        .as("three files, and twice the folder that they were in")
        .hasSize(3 + 2);
    everywhere(replay, calls.steps().size());
  }

  /// All of a set is removed, and another is written in its place before the removal is durable.
  @Test
  void overASetThatWasRemoved() {
    Path set = tree.resolve("set");
    ShardWriter.write(
        session,
        set,
        TestShards.FIELDS,
        2,
        TestShards.sources(TestShards.FIELDS, others, 0, 2),
        TestShards.options());
    CrashReplay replay = CrashReplay.before(tree);
    for (String name : TestShards.names(set).reversed()) {
      assertThat(calls.unlink(set.resolve(name))).isZero();
    }
    othersWereRemoved = true;
    write();
    assertThat(calls.steps().stream().takeWhile(step -> !(step instanceof Step.Rename)))
        .as("before a new shard has its name")
        .containsSubsequence(
            new Step.Remove(Path.of("set", "shards.json")), new Step.SyncFolder(Path.of("set")));
    everywhere(replay, calls.steps().size());
  }

  /// The index has its name, but the synchronisation of the folder fails, so the writer removes
  /// all of the set.
  @Test
  void whileASetIsTakenBack() {
    FaultyFileCalls faulty = new FaultyFileCalls(calls);
    CrashReplay replay = CrashReplay.before(tree);
    // Thirteen calls come before: four for folders, two for each of the three shards and the
    // index, and one for the folder of the moved shards.
    faulty.at(Function.FSYNC, 4 + 2 * 4 + 2, new Fails(Errno.EIO));
    assertThatThrownBy(
            () -> {
              try (GantrySession recorded = Sessions.over(faulty);
                  ShardWriter writer = writer(recorded, tree)) {
                TestShards.append(writer, values, SAMPLES);
                writer.finish();
              }
            })
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("EIO");
    assertThat(tree.resolve("set")).doesNotExist();
    requireIndexGoneBeforeShards();
    everywhere(replay, Integer.MAX_VALUE);
  }
}
