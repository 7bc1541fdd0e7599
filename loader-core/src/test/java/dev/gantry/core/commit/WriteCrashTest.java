package dev.gantry.core.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.Gantry;
import dev.gantry.core.Sessions;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.testing.CrashReplay;
import dev.gantry.core.testing.CrashReplay.Loss;
import dev.gantry.core.testing.CrashReplay.Step;
import dev.gantry.core.testing.FaultyFileCalls;
import dev.gantry.core.testing.FaultyFileCalls.Fails;
import dev.gantry.core.testing.FaultyFileCalls.Function;
import dev.gantry.core.testing.NoLeaks;
import dev.gantry.core.testing.RecordingFileCalls;
import dev.gantry.core.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/// Power cuts at every step of a write.
@ExtendWith(NoLeaks.class)
class WriteCrashTest {
  private static final int SEEDS = 4;

  /// Old files, by name; `added` is none of them.
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
                    List.of(new Source.HostMemory(MemorySegment.ofArray(entry.getValue())))))
            .toList();
    try (Gantry gantry = Sessions.over(calls)) {
      gantry.write(
          files,
          WriteOptions.defaults()
              .withRequestBytes(8192)
              .withThreads(threads)
              .withPageCache(pageCache));
    }
  }

  @FunctionalInterface
  private interface Check {
    void accept(String where, String name, byte[] found);
  }

  /// `found` is null where there is no such file.
  private void everywhere(List<Step> steps, int first, Check check) throws IOException {
    for (int length = first; length <= steps.size(); length++) {
      for (Loss loss : Loss.values()) {
        for (long seed = 0; seed < (loss == Loss.SOME ? SEEDS : 1); seed++) {
          Path state = scratch.resolve("state");
          replay.materialise(steps.subList(0, length), loss, seed, state);
          Step last = length == 0 ? null : steps.get(length - 1);
          String where =
              "lost " + loss + ", seed " + seed + ", after " + length + " steps: " + last;
          for (String name : NEW.keySet()) {
            Path file = state.resolve(name);
            check.accept(where, name, Files.exists(file) ? Files.readAllBytes(file) : null);
          }
          delete(state);
        }
      }
    }
  }

  private static void delete(Path tree) {
    try (Stream<Path> paths = Files.walk(tree)) {
      for (Path path : paths.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(path);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void isOldOrNew(String where, String name, byte[] found) {
    boolean old = Arrays.equals(found, OLD.get(name));
    assertThat(old || Arrays.equals(found, NEW.get(name))).as("%s: %s", name, where).isTrue();
  }

  private static void isNew(String where, String name, byte[] found) {
    assertThat(Arrays.equals(found, NEW.get(name))).as("%s: %s", name, where).isTrue();
  }

  @ParameterizedTest
  @CsvSource({"1, false", "1, true", "3, false"})
  void everyFileIsTheOldOrTheNewOneAndInTheEndTheNew(int threads, boolean pageCache)
      throws IOException {
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    write(calls, threads, pageCache);
    List<Step> steps = calls.steps();
    assertThat(steps.stream().filter(Step.Rename.class::isInstance)).hasSize(NEW.size());

    everywhere(steps, 0, WriteCrashTest::isOldOrNew);
    everywhere(steps, steps.size(), WriteCrashTest::isNew);
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

  /// First a failure, and a power cut at any point of it or of the cleaning up.
  @ParameterizedTest
  @CsvSource({"PWRITE, 4", "FSYNC, 3", "RENAME, 3", "FSYNC, 6", "FSYNC, 7"})
  void afterAFailureToo(Function function, int number) throws IOException {
    FaultyFileCalls faulty =
        new FaultyFileCalls(Libc.INSTANCE).at(function, number, new Fails(Errno.EIO));
    RecordingFileCalls calls = new RecordingFileCalls(faulty, root);
    assertThat(catchThrowableOfType(TransferException.class, () -> write(calls, 1, false)))
        .isNotNull();
    everywhere(calls.steps(), 0, WriteCrashTest::isOldOrNew);
  }

  @Test
  void foldersLast() throws IOException {
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
