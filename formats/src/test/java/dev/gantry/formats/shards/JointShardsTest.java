// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.shards;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.DType;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.Field;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// A set made of several processes' parts has each named part once, or does not exist.
@ExtendWith(NoLeaks.class)
@Tag("beside")
class JointShardsTest {
  private static final int SEEDS = 2;
  private static final int SAMPLES = 7;

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  @TempDir(factory = MemoryFolder.class)
  Path scratch;

  private final GantrySession session = GantrySession.open();
  private final Map<String, byte[]> values = TestShards.values(TestShards.FIELDS, 1, SAMPLES);
  private final Map<String, byte[]> others = TestShards.values(TestShards.FIELDS, 9, 3);
  private Path tree;

  @BeforeEach
  void makeTree() throws IOException {
    tree = Files.createDirectory(parent.resolve("tree"));
  }

  @AfterEach
  void close() {
    session.close();
  }

  private static void part(
      GantrySession session, Path set, String name, Map<String, byte[]> values, int samples) {
    try (ShardWriter writer =
        JointShards.part(session, set, name, TestShards.FIELDS, TestShards.options())) {
      TestShards.append(writer, values, samples);
      ShardSet _ = writer.finish();
    }
  }

  private static void write(
      GantrySession session, Path set, Map<String, byte[]> values, int samples) {
    try (JointShards joint = JointShards.begin(session, set, true)) {
      part(session, set, "0-1", values, samples);
      part(session, set, "0-2", values, 1);
      ShardSet _ = joint.finish(TestShards.FIELDS, List.of("0-1"), TestShards.options());
    }
  }

  @Test
  void theSetHasTheNamedPartsInTheirOrderAndNothingElse() {
    Path set = tree.resolve("set");
    try (JointShards joint = JointShards.begin(session, set, false)) {
      part(session, set, "b", values, 4);
      part(session, set, "lost", values, 5);
      part(session, set, "a", values, 1);
      try (ShardWriter writer =
          JointShards.part(session, set, "killed", TestShards.FIELDS, TestShards.options())) {
        TestShards.append(writer, values, 5);
        // This writer is still at work when the other parts are finished.
        ShardSet written = joint.finish(TestShards.FIELDS, List.of("a", "b"), TestShards.options());
        assertThat(written.samples()).isEqualTo(5);
        assertThat(unfinished(set)).doesNotExist();
      }
      assertThatThrownBy(() -> part(session, set, "late", values, 1))
          .isInstanceOf(TransferException.class);
    }
    ShardSet there = ShardSet.open(set);
    there.verify();
    assertThat(there.shards().getFirst().samples()).isEqualTo(1);
    List<String> names = new ArrayList<>(TestShards.names(set));
    assertThat(names).hasSize(there.shards().size() + 1).contains("shards.json");
  }

  private static Path unfinished(Path set) {
    return set.resolve(".gantry-unfinished");
  }

  @Test
  void givenUpItLeavesNothing() {
    Path set = tree.resolve("deep/set");
    try (JointShards _ = JointShards.begin(session, set, false)) {
      part(session, set, "a", values, 4);
      assertThatThrownBy(() -> JointShards.begin(session, set, false))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("another writer of samples uses");
    }
    assertThat(tree).isEmptyDirectory();
  }

  @Test
  void partsThatDoNotFitAreRefused() {
    Path set = tree.resolve("set");
    List<Field> fields = List.of(new Field("x", DType.U8, TensorShape.of()));
    try (JointShards joint = JointShards.begin(session, set, false)) {
      part(session, set, "a", values, 4);
      assertThatThrownBy(() -> joint.finish(fields, List.of("a"), TestShards.options()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("has the fields");
      assertThatThrownBy(
              () -> joint.finish(TestShards.FIELDS, List.of("a"), ShardOptions.defaults()))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("has a checksum each 4096 bytes, not 1048576");
      assertThatThrownBy(() -> joint.finish(TestShards.FIELDS, List.of("b"), TestShards.options()))
          .isInstanceOfAny(MalformedFileException.class, TransferException.class);
      assertThatThrownBy(() -> part(session, set, "../a", values, 4))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("letters, digits and hyphens");
      assertThatThrownBy(() -> part(session, set, "a", values, 4))
          .isInstanceOf(TransferException.class);
    }
    assertThat(tree).isEmptyDirectory();
  }

  @Test
  void aSetIsReplacedOnlyWhereItMayBe() throws IOException {
    Path set = tree.resolve("set");
    write(session, set, others, 3);
    assertThatThrownBy(() -> JointShards.begin(session, set, false))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("holds samples already");
    Path mine = Files.writeString(set.resolve("notes.txt"), "mine");

    write(session, set, values, SAMPLES);
    write(session, set, others, 3);
    ShardSet there = ShardSet.open(set);
    there.verify();
    assertThat(there.samples()).isEqualTo(3);
    assertThat(TestShards.names(set)).hasSize(there.shards().size() + 2);
    assertThat(mine).hasContent("mine");
  }

  /// At every moment there is the old set or the new set, and the next writer leaves only one.
  @Test
  void replacingSurvivesEveryCrash() {
    Path set = tree.resolve("set");
    write(session, set, others, 3);
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, tree);
    CrashReplay replay = CrashReplay.before(tree);
    try (GantrySession recorded = Sessions.over(calls)) {
      write(recorded, set, values, SAMPLES);
    }
    List<Step> steps = calls.steps();
    for (int length = 0; length <= steps.size(); length++) {
      boolean reported = length == steps.size();
      replay.everyCrash(
          steps.subList(0, length),
          length,
          SEEDS,
          scratch,
          (where, root) -> {
            Path folder = root.resolve("set");
            Optional<ShardSet> there = TestShards.present(folder);
            assertThat(there).as(where).isPresent();
            there.get().verify();
            assertThat(there.get().samples()).as(where).isIn(reported ? 7L : 3L, 7L);
            write(session, folder, others, 2);
            ShardSet next = ShardSet.open(folder);
            next.verify();
            assertThat(next.samples()).as(where).isEqualTo(2);
            assertThat(TestShards.names(folder)).as(where).hasSize(next.shards().size() + 1);
          });
    }
  }
}
