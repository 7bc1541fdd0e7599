// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A set of files with the user's names is there completely or not at all. A folder may have
/// several sets.
@ExtendWith(NoLeaks.class)
class TfRecordShardsTest {
  private static final int SEEDS = 2;

  @TempDir(factory = MemoryFolder.class)
  Path parent;

  @TempDir(factory = MemoryFolder.class)
  Path scratch;

  private final GantrySession session = GantrySession.open();
  private Path tree;

  @BeforeEach
  void makeTree() throws IOException {
    tree = Files.createDirectory(parent.resolve("tree"));
  }

  @AfterEach
  void close() {
    session.close();
  }

  /// Writes one record in each file. All files have the same size, so that sizes do not
  /// distinguish sets.
  private static void write(GantrySession session, Path folder, String name, int files, int value) {
    try (TfRecordShards shards =
        TfRecordShards.create(session, folder, name, files, Compression.NONE)) {
      for (int i = 0; i < files; i++) {
        shards.write(i, record(value));
      }
      shards.commit();
    }
  }

  private static MemorySegment record(int value) {
    return MemorySegment.ofArray(new byte[] {(byte) value});
  }

  private List<Integer> values(List<Path> files) {
    List<Integer> values = new ArrayList<>();
    for (Path file : files) {
      try (TfRecordReader reader = TfRecordReader.open(session, file, TfRecordOptions.defaults())) {
        while (reader.next()) {
          values.add((int) reader.record().get(ValueLayout.JAVA_BYTE, 0));
        }
      }
    }
    return values;
  }

  /// Reads the files of the folder by the folder's name.
  private List<Integer> values(Path folder) {
    return values(
        FileList.files(Folder.at(GantrySession.shared(), Location.of(folder)).orElseThrow())
            .stream()
            .map(Location::path)
            .toList());
  }

  private static List<String> names(Path folder) {
    return FolderEntries.of(folder).stream()
        .map(entry -> entry.getFileName().toString())
        .sorted()
        .toList();
  }

  @Test
  void setsOfOneFolderAreWrittenAtOnceAndReplacedOneByOne() {
    try (TfRecordShards train = TfRecordShards.create(session, tree, "train", 1, Compression.NONE);
        TfRecordShards test = TfRecordShards.create(session, tree, "test", 1, Compression.NONE)) {
      train.write(0, record(1));
      test.write(0, record(2));
      assertThatThrownBy(() -> write(session, tree, "train", 3, 5))
          .isInstanceOf(MisuseException.class)
          .hasMessage("another writer of train uses " + tree);
      train.commit();
      test.commit();
    }
    assertThat(values(tree)).containsExactly(2, 1);
    write(session, tree, "train", 2, 3);
    assertThat(names(tree))
        .containsExactly(
            "_gantry-files-test",
            "_gantry-files-train",
            "test-00000-of-00001",
            "train-00000-of-00002",
            "train-00001-of-00002");
    assertThat(values(tree)).containsExactly(2, 3, 3);
  }

  @Test
  void filesOfOthersAreReadAndStayUnlessTheyHaveTheNameOfTheSet() {
    for (String other : List.of("test-00000-of-00001", "train-00000-of-00003")) {
      try (TfRecordWriter writer =
          TfRecordWriter.create(session, tree.resolve(other), Compression.NONE)) {
        writer.write(new byte[] {9});
        writer.commit();
      }
    }
    assertThat(values(tree)).containsExactly(9, 9);
    write(session, tree, "train", 1, 1);
    assertThat(values(tree)).containsExactly(9, 1);
    assertThat(names(tree)).contains("train-00000-of-00003");
  }

  /// A folder of the hub's cache has links to the files of its datasets.
  @Test
  void aSetMayConsistOfLinks() throws IOException {
    write(session, tree, "train", 2, 1);
    Path links = Files.createDirectory(parent.resolve("links"));
    for (String name : names(tree)) {
      Files.createSymbolicLink(links.resolve(name), tree.resolve(name));
    }
    assertThat(values(links)).isEqualTo(values(tree));
    Files.delete(tree.resolve("train-00001-of-00002"));
    assertThatThrownBy(() -> values(links))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("train-00001-of-00002 is missing");
  }

  @Test
  void aNameMayHaveAFolderBeforeItButNoDotAndNoLineBreak() {
    write(session, tree, "deep/a b_é", 1, 1);
    assertThat(values(TfRecordShards.files(tree, "deep/a b_é", 1))).containsExactly(1);
    assertThat(values(tree.resolve("deep"))).containsExactly(1);
    for (String name : List.of(".train", "a\nb", "a\r")) {
      assertThatThrownBy(() -> write(session, tree.resolve("other"), name, 1, 1))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("must not begin with a dot");
    }
    assertThat(names(tree)).containsExactly("deep");
  }

  @Test
  void aShardThatTheSetDoesNotHaveIsMisuse() {
    try (TfRecordShards shards =
        TfRecordShards.create(session, tree, "train", 2, Compression.NONE)) {
      assertThatThrownBy(() -> shards.write(2, MemorySegment.ofArray(new byte[1])))
          .isInstanceOf(MisuseException.class)
          .hasMessage("shard must be 0 to 1 (was 2)");
      assertThatThrownBy(() -> shards.records(-1))
          .isInstanceOf(MisuseException.class)
          .hasMessage("shard must be 0 to 1 (was -1)");
    }
    assertThat(names(tree)).isEmpty();
  }

  @Test
  void aFolderThatIsOneSetTakesNoOther() {
    try (JointFiles joint = JointFiles.begin(session, tree, true)) {
      List<Path> _ = joint.finish(List.of());
    }
    assertThatThrownBy(() -> write(session, tree, "train", 1, 1))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("holds a set of files already");
    assertThat(names(tree)).containsExactly(JointFiles.LIST);
  }

  /// A failed first set of a name is removed. An old set is then gone as well, and its list
  /// reports that.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFailureWithinTheCommitIsNoSet(boolean isOver) {
    // The first renames give the files their names in the folder of unfinished work.
    for (int call = isOver ? 6 : 5; call <= 7; call++) {
      Path folder = tree.resolve("set" + call);
      if (isOver) {
        write(session, folder, "train", 2, 1);
      }
      FaultyFileCalls calls =
          new FaultyFileCalls(Libc.INSTANCE).at(Function.RENAME, call, new Fails(Errno.EIO));
      try (GantrySession faulty = Sessions.over(calls)) {
        assertThatThrownBy(() -> write(faulty, folder, "train", 2, 2))
            .isInstanceOf(TransferException.class)
            .hasMessageContaining("EIO");
      }
      if (!isOver) {
        assertThat(folder).doesNotExist();
      } else if (call > 6) {
        assertThatThrownBy(() -> values(folder))
            .isInstanceOf(MalformedFileException.class)
            .hasMessageContainingAll(folder.toString(), "write the set again");
      } else {
        assertThat(values(folder)).containsExactly(1, 1);
      }
      write(session, folder, "train", 1, 3);
      assertThat(names(folder)).containsExactly("_gantry-files-train", "train-00000-of-00001");
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 2, 3})
  void aSetIsWholeOrNotThereAfterEveryCrash(int oldFiles) {
    if (oldFiles > 0) {
      write(session, tree, "train", oldFiles, 1);
    }
    List<Integer> old = Collections.nCopies(oldFiles, 1);
    List<Integer> made = List.of(2, 2);
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, tree);
    CrashReplay replay = CrashReplay.before(tree);
    try (GantrySession recorded = Sessions.over(calls)) {
      write(recorded, tree, "train", 2, 2);
    }
    List<Step> steps = calls.steps();
    if (oldFiles > 0) {
      // The file systems that the replay models keep the order of entries, but others may not.
      Path list = Path.of("_gantry-files-train");
      Path work = Path.of(".gantry-train.work");
      Path file = Path.of(JointFiles.numbered("train", 0, oldFiles));
      assertThat(steps)
          .containsSubsequence(
              new Step.Rename(work.resolve(list), list),
              new Step.SyncFolder(Path.of("")),
              new Step.Remove(file),
              new Step.SyncFolder(Path.of("")),
              new Step.Rename(work.resolve("part-0"), Path.of(JointFiles.numbered("train", 0, 2))));
    }
    for (int length = 0; length <= steps.size(); length++) {
      boolean reported = length == steps.size();
      replay.everyCrash(
          steps.subList(0, length),
          length,
          SEEDS,
          scratch,
          (where, root) -> {
            try {
              assertThat(values(root)).as(where).isIn(reported ? made : old, made);
              if (reported) {
                assertThat(names(root))
                    .as(where)
                    .filteredOn(name -> !name.startsWith("."))
                    .hasSize(3);
              }
            } catch (MalformedFileException refusal) {
              assertThat(refusal).as(where).hasMessageContaining("write the set again");
              assertThat(reported).as(where).isFalse();
            }
            // The named files belong to one set, or one file is missing and the list reports that.
            List<Path> named = TfRecordShards.files(root, "train", 2);
            List<Path> found = named.stream().filter(Files::exists).toList();
            if (found.size() == 2) {
              assertThat(values(named)).as(where).isIn(old, made);
            } else if (found.size() == 1) {
              assertThatThrownBy(() ->
                      FileList.requireWhole(
                          GantrySession.shared(), found.stream().map(Location::of).toList()))
                  .as(where)
                  .hasMessageContaining("write the set again");
            }
            // The next writer leaves one complete set, even if it writes nothing.
            TfRecordShards.create(session, root, "train", 1, Compression.NONE).close();
            assertThat(values(root)).as(where).isIn(reported ? made : old, made);
            write(session, root, "train", 1, 3);
            assertThat(names(root))
                .as(where)
                .containsExactly("_gantry-files-train", "train-00000-of-00001");
          });
    }
  }
}
