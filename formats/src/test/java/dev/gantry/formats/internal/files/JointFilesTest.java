// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import dev.gantry.formats.internal.files.JointFiles.Part;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// A list defines the files of a set: its own files, or those of the list before it.
@ExtendWith(NoLeaks.class)
class JointFilesTest {
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

  private static void part(GantrySession session, Path set, String name, int bytes) {
    try (AppendedFile file = session.append(JointFiles.unfinished(set).resolve(name))) {
      file.append(MemorySegment.ofArray(new byte[bytes]));
      AppendedFile.commit(List.of(file));
    }
  }

  private static void write(GantrySession session, Path set, String job) {
    try (JointFiles joint = JointFiles.begin(session, set, true)) {
      part(session, set, "part-1", job.length());
      part(session, set, "part-2", 10);
      part(session, set, "part-3", 20);
      List<Path> _ = joint.finish(List.of(new Part("part-1", job), new Part("part-3", job + "-b")));
    }
  }

  @Test
  void theSetHasTheNamedFilesAndTheOthersGo() throws IOException {
    Path set = tree.resolve("deep/set");
    write(session, set, "one");
    assertThat(open(set)).containsExactly(set.resolve("one"), set.resolve("one-b"));
    Path mine = Files.writeString(set.resolve("mine"), "mine");
    assertThatThrownBy(() -> JointFiles.begin(session, set, false))
        .isInstanceOf(MisuseException.class)
        .hasMessageContaining("holds a set of files already");

    write(session, set, "two");
    assertThat(names(set)).containsExactly("_gantry-files", "mine", "two", "two-b");
    assertThat(mine).hasContent("mine");
    assertThat(open(set)).containsExactly(set.resolve("two"), set.resolve("two-b"));
    Files.write(set.resolve("two"), new byte[1]);
    assertThatThrownBy(() -> open(set))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("two is missing, or does not have 3 bytes");
  }

  @Test
  void givenUpItLeavesNothing() {
    try (JointFiles _ = JointFiles.begin(session, tree.resolve("set"), false)) {
      part(session, tree.resolve("set"), "part-1", 5);
    }
    assertThat(tree).isEmptyDirectory();
    assertThat(open(tree)).isEmpty();
  }

  /// Writes a named set of two files over `calls`.
  private static void writeNamed(FileCalls calls, Path set, String text) {
    try (GantrySession faulty = Sessions.over(calls);
        JointFiles joint = JointFiles.beginNamed(faulty, set, "data")) {
      for (int i = 0; i < 2; i++) {
        try (AppendedFile file = faulty.append(joint.unfinished().resolve("part-" + i))) {
          file.append(MemorySegment.ofArray(text.getBytes(StandardCharsets.UTF_8)));
          AppendedFile.commit(List.of(file));
        }
      }
      List<Path> _ =
          joint.finish(
              List.of(
                  new Part("part-0", JointFiles.numbered("data", 0, 2)),
                  new Part("part-1", JointFiles.numbered("data", 1, 2))));
    }
  }

  /// The old set cannot be restored from there on.
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aSetThatHasItsNamesStaysIfOnlyTheLastSynchronisationFails(boolean named) throws IOException {
    Path set = tree.resolve("set");
    FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
    if (!named) {
      write(session, set, "old");
    }
    // The files and lists are renamed when they are written, and again when they get their names.
    calls.at(
        FaultyFileCalls.Function.RENAME,
        named ? 2 + 2 + 3 : 3 + 2 + 3,
        new FaultyFileCalls.After(() ->
            calls.at(
                FaultyFileCalls.Function.FSYNC,
                calls.count(FaultyFileCalls.Function.FSYNC) + 1,
                new FaultyFileCalls.Fails(Errno.EIO))));
    assertThatThrownBy(
            () -> {
              if (named) {
                writeNamed(calls, set, "text");
              } else {
                try (GantrySession faulty = Sessions.over(calls)) {
                  write(faulty, set, "newer");
                }
              }
            })
        .hasMessageContaining("fsync");
    if (named) {
      assertThat(set.resolve(JointFiles.numbered("data", 0, 2))).hasContent("text");
      assertThat(set.resolve(JointFiles.numbered("data", 1, 2))).hasContent("text");
    } else {
      assertThat(open(set)).containsExactly(set.resolve("newer"), set.resolve("newer-b"));
    }
  }

  @Test
  void filesOfASetWithoutItsListAreRefusedAndThoseOfOthersAreNot() throws IOException {
    Path others = Files.writeString(tree.resolve("part-00000-of-00002"), "1");
    assertThat(open(tree)).containsExactly(others);
    String name = Part.of("", 0, 2, "1a2b3c4d-ffff", ".tfrecord").name();
    assertThat(name).isEqualTo("part-00000-of-00002-1a2b3c4d.tfrecord");
    Files.writeString(tree.resolve(name), "1");
    assertThatThrownBy(() -> open(tree))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContainingAll("no-list", name, "no _gantry-files");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "other 1\n",
        "gantry-files 1\n5 ../x\n",
        "gantry-files 1\n5 .x\n",
        "gantry-files 1\nx\n",
        "gantry-files 1\n5 x\n5 x\n"
      })
  void whatIsNoListIsRefused(String text) throws IOException {
    Files.writeString(tree.resolve(JointFiles.LIST), text);
    assertThatThrownBy(() -> open(tree)).isInstanceOf(MalformedFileException.class);
    assertThatThrownBy(() -> JointFiles.begin(session, tree, true))
        .isInstanceOf(MalformedFileException.class);
    assertThat(names(tree)).containsExactly(JointFiles.LIST);
  }

  /// At every moment there is the old set or the new set, and the next writer leaves only one.
  @Test
  void replacingSurvivesEveryCrash() {
    Path set = tree.resolve("set");
    write(session, set, "old");
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, tree);
    CrashReplay replay = CrashReplay.before(tree);
    try (GantrySession recorded = Sessions.over(calls)) {
      write(recorded, set, "newer");
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
            assertThat(open(folder).getFirst().getFileName().toString())
                .as(where)
                .isIn(reported ? "newer" : "old", "newer");
            write(session, folder, "next");
            assertThat(names(folder)).as(where).containsExactly("_gantry-files", "next", "next-b");
          });
    }
  }

  private static List<Path> open(Path folder) {
    return FileList.files(Folder.at(GantrySession.shared(), Location.of(folder)).orElseThrow())
        .stream()
        .map(Location::path)
        .toList();
  }

  private static List<String> names(Path folder) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(entry -> entry.getFileName().toString()).sorted().toList();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
