// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Memory;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Loss;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.Sessions;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@ExtendWith(NoLeaks.class)
class WriteCrashTest {
  private static final int SEEDS = 4;

  /// The old files by name; the write adds the file `added`.
  private static final Map<String, byte[]> OLD =
      Map.of(
          "first", TestFiles.bytes(1, 9000),
          "sub/second", TestFiles.bytes(2, 20_000),
          "shrunk", TestFiles.bytes(3, 30_000),
          "emptied", TestFiles.bytes(4, 10));

  private static final Map<String, byte[]> NEW =
      new TreeMap<>(
          Map.of(
              "first", TestFiles.bytes(11, 12_288),
              "sub/second", TestFiles.bytes(12, 20_001),
              "shrunk", TestFiles.bytes(13, 5),
              "emptied", new byte[0],
              "added", TestFiles.bytes(15, 8191)));

  @TempDir Path root;
  @TempDir Path scratch;
  private CrashReplay replay;

  @BeforeEach
  void oldFiles() throws IOException {
    Files.createDirectory(root.resolve("sub"));
    for (Map.Entry<String, byte[]> old : OLD.entrySet()) {
      Files.write(root.resolve(old.getKey()), old.getValue());
    }
    replay = CrashReplay.before(root);
  }

  private void write(FileCalls calls, int threads, boolean pageCache) {
    List<NewFile> files =
        NEW.entrySet().stream()
            .map(entry ->
                new NewFile(
                    root.resolve(entry.getKey()),
                    List.of(new Memory.OnHost(MemorySegment.ofArray(entry.getValue())))))
            .toList();
    try (GantrySession gantry = Sessions.over(calls)) {
      gantry.write(
          files,
          WriteOptions.defaults()
              .withRequestBytes(8192)
              .withThreads(threads)
              .withPageCache(pageCache));
    }
  }

  private void everywhereOldOrNew(List<Step> steps) {
    replay.everyCrash(
        steps,
        0,
        SEEDS,
        scratch,
        (where, tree) ->
            NEW.keySet()
                .forEach(name -> {
                  byte[] found = found(tree, name);
                  assertThat(
                          Arrays.equals(found, OLD.get(name))
                              || Arrays.equals(found, NEW.get(name)))
                      .as("%s: %s", name, where)
                      .isTrue();
                }));
  }

  /// Returns the bytes of a file; null if there is no such file.
  private static byte @Nullable [] found(Path tree, String name) {
    try {
      Path file = tree.resolve(name);
      return Files.exists(file) ? Files.readAllBytes(file) : null;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "3, false"})
  void everyFileIsTheOldOrTheNewOneAndInTheEndTheNew(int threads, boolean pageCache) {
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    write(calls, threads, pageCache);
    List<Step> steps = calls.steps();
    assertThat(steps.stream().filter(Step.Rename.class::isInstance)).hasSize(NEW.size());

    everywhereOldOrNew(steps);
    replay.everyCrash(
        steps,
        steps.size(),
        SEEDS,
        scratch,
        (where, tree) ->
            NEW.forEach((name, bytes) ->
                assertThat(Arrays.equals(found(tree, name), bytes))
                    .as("%s: %s", name, where)
                    .isTrue()));
  }

  @Test
  void noFileGetsItsNameBeforeAllAreOnTheDisk() {
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    write(calls, 3, false);
    List<String> order =
        calls.steps().stream()
            .flatMap(step ->
                switch (step) {
                  case Step.SyncFile _ -> Stream.of("sync file");
                  case Step.Rename _ -> Stream.of("rename");
                  case Step.SyncFolder _ -> Stream.of("sync folder");
                  case Step.Open _,
                      Step.Write _,
                      Step.Allocate _,
                      Step.Truncate _,
                      Step.MakeFolder _,
                      Step.Remove _ ->
                      Stream.empty();
                })
            .toList();
    int files = NEW.size();
    assertThat(order.subList(0, files)).containsOnly("sync file");
    assertThat(order.subList(files, 2 * files)).containsOnly("rename");
    assertThat(order.subList(2 * files, order.size()))
        .containsExactly("sync folder", "sync folder");
  }

  /// A call of the write fails first, and the power cut comes at any later step, also while the
  /// write cleans up.
  @ParameterizedTest
  @CsvSource({"PWRITE, 4", "FSYNC, 3", "RENAME, 3", "FSYNC, 6", "FSYNC, 7"})
  void afterAFailureToo(Function function, int number) {
    FaultyFileCalls faulty =
        new FaultyFileCalls(Libc.INSTANCE).at(function, number, new Fails(Errno.EIO));
    RecordingFileCalls calls = new RecordingFileCalls(faulty, root);
    assertThat(catchThrowableOfType(TransferException.class, () -> write(calls, 1, false)))
        .isNotNull();
    everywhereOldOrNew(calls.steps());
  }

  @Test
  void foldersLast() {
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    Folders folders = new Folders(calls);
    folders.create(root.resolve("made"));
    folders.removeFile(root.resolve("sub/second"));
    folders.sync(root.resolve("sub"));
    folders.removeFolder(root.resolve("sub"));
    folders.sync(root);
    for (Loss loss : Loss.values()) {
      Path state = scratch.resolve(loss.name());
      replay.materialise(calls.steps(), loss, 0, state);
      assertThat(state.resolve("made")).isDirectory();
      assertThat(state.resolve("sub")).doesNotExist();
    }
  }
}
