// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import static dev.gantry.core.internal.natives.FileCalls.O_CREAT;
import static dev.gantry.core.internal.natives.FileCalls.O_EXCL;
import static dev.gantry.core.internal.natives.FileCalls.O_RDONLY;
import static dev.gantry.core.internal.natives.FileCalls.O_RDWR;
import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.CrashReplay.Loss;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// The model loses exactly what a power cut may lose.
@ExtendWith(NoLeaks.class)
class CrashReplayTest {
  @TempDir Path root;
  @TempDir Path replayed;
  private CrashReplay replay;
  private RecordingFileCalls calls;
  private int states;

  @BeforeEach
  void oldTree() throws IOException {
    Files.createDirectories(root.resolve("sub/deep"));
    Files.writeString(root.resolve("old"), "old");
    Files.writeString(root.resolve("sub/inner"), "inner");
    replay = CrashReplay.before(root);
    calls = new RecordingFileCalls(Libc.INSTANCE, root);
  }

  private int open(String file, int flags) {
    int descriptor = calls.open(root.resolve(file), flags, 0666);
    assertThat(descriptor).isNotNegative();
    return descriptor;
  }

  private void write(int descriptor, String text, long offset) {
    try (Arena arena = Arena.ofConfined()) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      MemorySegment memory = arena.allocate(bytes.length).copyFrom(MemorySegment.ofArray(bytes));
      assertThat(calls.pwrite(descriptor, memory, bytes.length, offset)).isEqualTo(bytes.length);
    }
  }

  private void sync(String path) {
    int descriptor = open(path, O_RDONLY);
    good(calls.fsync(descriptor));
    good(calls.close(descriptor));
  }

  private static void good(int result) {
    assertThat(result).isZero();
  }

  /// Creates a file with one write.
  private void create(String file, String text) {
    int descriptor = open(file, O_RDWR | O_CREAT | O_EXCL);
    write(descriptor, text, 0);
    good(calls.close(descriptor));
  }

  /// Returns the contents of the files by name after all steps, with zero bytes as `0`.
  private Map<String, String> left(Loss loss) {
    return left(loss, 0);
  }

  private Map<String, String> left(Loss loss, long seed) {
    Path into = replayed.resolve("state" + states++);
    replay.materialise(calls.steps(), loss, seed, into);
    return filesOf(into);
  }

  private static Map<String, String> filesOf(Path folder) {
    Map<String, String> files = new TreeMap<>();
    try (Stream<Path> paths = Files.walk(folder)) {
      for (Path path : paths.filter(Files::isRegularFile).toList()) {
        files.put(folder.relativize(path).toString(), Files.readString(path).replace('\0', '0'));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return files;
  }

  @Test
  void withoutAnyStepTheTreeIsAsItWas() {
    for (Loss loss : Loss.values()) {
      assertThat(left(loss)).isEqualTo(Map.of("old", "old", "sub/inner", "inner"));
      assertThat(replayed.resolve("state" + (states - 1) + "/sub/deep")).isDirectory();
    }
  }

  @Test
  void whatWasNotSynchronisedMayBeGone() {
    create("new", "new");
    assertThat(left(Loss.EVERYTHING)).doesNotContainKey("new");
    assertThat(left(Loss.DATA)).containsEntry("new", "");
    assertThat(left(Loss.DATA_BUT_SIZES)).containsEntry("new", "000");
  }

  @Test
  void aSynchronisedFileWithoutItsEntryIsLost() {
    create("new", "new");
    sync("new");
    assertThat(left(Loss.EVERYTHING)).doesNotContainKey("new");
    assertThat(left(Loss.DATA)).containsEntry("new", "new");
    sync("");
    for (Loss loss : Loss.values()) {
      assertThat(left(loss)).containsEntry("new", "new");
    }
  }

  @Test
  void aFileIsAsItWasWhenItWasSynchronised() {
    int descriptor = open("old", O_RDWR);
    write(descriptor, "OLD!", 0);
    good(calls.fsync(descriptor));
    write(descriptor, "late", 2);
    assertThat(left(Loss.EVERYTHING)).containsEntry("old", "OLD!");
    assertThat(left(Loss.DATA_BUT_SIZES)).containsEntry("old", "OLD!00");
    good(calls.ftruncate(descriptor, 1));
    assertThat(left(Loss.DATA)).containsEntry("old", "OLD!");
    assertThat(left(Loss.DATA_BUT_SIZES)).containsEntry("old", "O");
    good(calls.fallocate(descriptor, 0, 0, 3));
    good(calls.fsync(descriptor));
    good(calls.close(descriptor));
    for (Loss loss : Loss.values()) {
      assertThat(left(loss)).containsEntry("old", "O00");
    }
  }

  /// This mistake is the reason for the model.
  @Test
  void aRenameOfWhatWasNotSynchronisedLosesTheOldFileToo() {
    create("temporary", "new");
    good(calls.rename(root.resolve("temporary"), root.resolve("old")));
    assertThat(left(Loss.EVERYTHING)).containsEntry("old", "old");
    assertThat(left(Loss.DATA)).containsEntry("old", "").doesNotContainKey("temporary");
    sync("");
    assertThat(left(Loss.EVERYTHING)).containsEntry("old", "");
    assertThat(left(Loss.DATA_BUT_SIZES)).containsEntry("old", "000");
  }

  @Test
  void aRenameIsOnTheDiskWithItsFolder() {
    create("temporary", "new");
    sync("temporary");
    good(calls.rename(root.resolve("temporary"), root.resolve("old")));
    assertThat(left(Loss.EVERYTHING)).containsEntry("old", "old");
    assertThat(left(Loss.DATA)).containsEntry("old", "new");
    sync("sub");
    assertThat(left(Loss.EVERYTHING)).containsEntry("old", "old");
    sync("");
    for (Loss loss : Loss.values()) {
      assertThat(left(loss)).containsEntry("old", "new").doesNotContainKey("temporary");
    }
  }

  @Test
  void aFileKeepsItsBytesThroughItsNames() {
    create("first", "one");
    int descriptor = open("first", O_RDWR);
    good(calls.rename(root.resolve("first"), root.resolve("second")));
    create("first", "two");
    write(descriptor, "ONE", 0);
    good(calls.fsync(descriptor));
    good(calls.close(descriptor));
    assertThat(left(Loss.DATA)).containsEntry("second", "ONE").containsEntry("first", "");
  }

  @Test
  void foldersToo() {
    good(calls.mkdir(root.resolve("made"), 0777));
    create("made/file", "text");
    sync("made/file");
    sync("made");
    assertThat(left(Loss.EVERYTHING))
        .as("a folder without an entry")
        .doesNotContainKey("made/file");
    assertThat(left(Loss.DATA)).containsEntry("made/file", "text");
    sync("");
    assertThat(left(Loss.EVERYTHING)).containsEntry("made/file", "text");

    good(calls.unlink(root.resolve("made/file")));
    good(calls.rmdir(root.resolve("sub/deep")));
    assertThat(left(Loss.EVERYTHING)).containsEntry("made/file", "text");
    assertThat(left(Loss.DATA)).doesNotContainKey("made/file");
    assertThat(replayed.resolve("state" + (states - 1) + "/sub/deep")).doesNotExist();
  }

  @Test
  void ofTheRestAnySectorsMayBeThere() {
    create("new", "a".repeat(512) + "b".repeat(512) + "c".repeat(100));
    sync("");
    Set<String> seen = new HashSet<>();
    for (long seed = 0; seed < 200; seed++) {
      String text = left(Loss.SOME, seed).get("new");
      seen.add(text.replaceAll("(.)\\1*", "$1"));
      assertThat(text).as("seed %s", seed).matches("(a{512}|0{512}|)(b{512}|0{512}|)(c{100}|)");
    }
    assertThat(seen).containsExactlyInAnyOrder("", "a", "0b", "ab", "0c", "a0c", "0bc", "abc");
  }

  @Test
  void ofTheEntriesAnyFirstOnesMayBeThere() {
    List<String> names = List.of("a", "b", "c");
    names.forEach(name -> create(name, name));
    Set<Set<String>> seen = new HashSet<>();
    for (long seed = 0; seed < 200; seed++) {
      Set<String> found = new HashSet<>(left(Loss.SOME, seed).keySet());
      found.retainAll(names);
      seen.add(found);
    }
    assertThat(seen)
        .containsExactlyInAnyOrder(Set.of(), Set.of("a"), Set.of("a", "b"), Set.of("a", "b", "c"));
  }

  @Test
  void callsThatFailAndFilesElsewhereAreNotRecorded() throws IOException {
    Path elsewhere = Files.createTempFile(replayed, "elsewhere", "");
    FaultyFileCalls faulty = new FaultyFileCalls(Libc.INSTANCE);
    calls = new RecordingFileCalls(faulty, root);
    int descriptor = calls.open(elsewhere, O_RDWR, 0);
    write(descriptor, "text", 0);
    good(calls.fsync(descriptor));
    good(calls.close(descriptor));
    assertThat(calls.open(root.resolve("missing"), O_RDWR, 0)).isNegative();
    assertThat(calls.unlink(root.resolve("missing"))).isNegative();
    assertThat(calls.mkdir(root.resolve("sub"), 0777)).isNegative();
    assertThat(calls.rmdir(root.resolve("sub"))).isNegative();
    assertThat(calls.rename(root.resolve("missing"), root.resolve("old"))).isNegative();
    assertThat(calls.steps()).isEmpty();
  }

  /// After all steps, a replay without loss must equal the files themselves: then the recorder and
  /// the model agree with the kernel.
  @Test
  void theModelAgreesWithTheKernel() {
    create("a", "12345");
    int descriptor = open("a", O_RDWR);
    write(descriptor, "xyz", 10);
    good(calls.ftruncate(descriptor, 12));
    good(calls.fallocate(descriptor, 0, 4, 12));
    good(calls.rename(root.resolve("a"), root.resolve("sub/inner")));
    good(calls.close(descriptor));
    good(calls.unlink(root.resolve("old")));
    good(calls.mkdir(root.resolve("made"), 0777));
    create("made/old", "again");
    List<String> all = new ArrayList<>(List.of("made/old", "sub/inner", "made", "sub", ""));
    all.forEach(this::sync);
    Map<String, String> kernel = filesOf(root);
    for (Loss loss : Loss.values()) {
      assertThat(left(loss)).as("%s", loss).isEqualTo(kernel);
    }
  }
}
