// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.CrashReplay;
import dev.gantry.testing.CrashReplay.Step;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.After;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.RecordingFileCalls;
import dev.gantry.testing.TestFiles;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.function.Predicate;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class AppendedFileTest {
  private static final byte[] OLD = TestFiles.bytes(1, 5000);

  /// Bytes that are longer than the buffer.
  private static final byte[] NEW = TestFiles.bytes(2, 700_001);

  private static final List<String> NAMES = List.of("first", "second");

  @TempDir Path root;
  @TempDir Path scratch;

  @BeforeEach
  void oldFiles() throws IOException {
    for (String name : NAMES) {
      Files.write(root.resolve(name), OLD);
    }
  }

  private void write(FileCalls calls) {
    try (AppendedFile first =
            new AppendedFile(calls, root.resolve("first"), new SessionCounters());
        AppendedFile second =
            new AppendedFile(calls, root.resolve("second"), new SessionCounters())) {
      for (int at = 0; at < NEW.length; at += 99_999) {
        int length = Math.min(99_999, NEW.length - at);
        first.append(MemorySegment.ofArray(NEW).asSlice(at, length));
      }
      second.append(MemorySegment.ofArray(NEW));
      AppendedFile.commit(List.of(first, second));
    }
  }

  private static boolean holds(Path tree, String name, byte[] bytes) {
    try {
      return Arrays.equals(Files.readAllBytes(tree.resolve(name)), bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void everyFile(Path tree, String where, Predicate<String> holds) {
    assertThat(NAMES).as("%s in %s", where, tree).allMatch(holds);
  }

  @Test
  void aPowerCutLeavesTheOldOrTheNewFileAndInTheEndTheNew() {
    CrashReplay replay = CrashReplay.before(root);
    RecordingFileCalls calls = new RecordingFileCalls(Libc.INSTANCE, root);
    write(calls);
    List<Step> steps = calls.steps();
    assertThat(steps.stream().filter(Step.Rename.class::isInstance)).hasSize(2);
    replay.everyCrash(
        steps,
        0,
        3,
        scratch,
        (where, tree) ->
            everyFile(tree, where, name -> holds(tree, name, OLD) || holds(tree, name, NEW)));
    replay.everyCrash(
        steps,
        steps.size(),
        3,
        scratch,
        (where, tree) -> everyFile(tree, where, name -> holds(tree, name, NEW)));
  }

  @ParameterizedTest
  @CsvSource({
    "OPEN, 1",
    "OPEN, 2",
    "PWRITE, 1",
    "PWRITE, 3",
    "PWRITE, 6",
    "FSYNC, 1",
    "FSYNC, 2",
    "RENAME, 1"
  })
  void aFailureBeforeTheFirstRenamingLeavesTheOldFiles(Function function, int call) {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(function, call, new Fails(Errno.EIO));
    assertThatThrownBy(() -> write(calls))
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("EIO")
        .hasMessageContaining(root + "/");
    everyFile(root, "after " + function, name -> holds(root, name, OLD));
    assertThat(root).isDirectoryNotContaining(TemporaryName::is);
  }

  /// After a failed `fsync` the kernel may have dropped the bytes, and a second `fsync` would
  /// report success.
  @ParameterizedTest
  @EnumSource(names = {"EIO", "EINTR"})
  void aFailedSyncIsNeverMadeAgain(Errno errno) {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(Function.FSYNC, 2, new Fails(errno));
    assertThatThrownBy(() -> write(calls)).hasMessageContaining(errno.name());
    assertThat(calls.count(Function.FSYNC)).isEqualTo(2);
    assertThat(calls.count(Function.RENAME)).isZero();
  }

  @Test
  void aFailingSynchronisationOfTheFolderLeavesTheNewFiles() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(Function.FSYNC, 3, new Fails(Errno.EIO));
    assertThatThrownBy(() -> write(calls)).hasMessageContaining("fsync failed: " + root + ":");
    everyFile(root, "after the renamings", name -> holds(root, name, NEW));
  }

  /// An OutOfMemoryError stands for all errors.
  @ParameterizedTest
  @CsvSource({"FSYNC, 1", "FSYNC, 2", "RENAME, 1"})
  void anErrorLeavesTheOldFilesAndNothingBesides(Function function, int call) {
    OutOfMemoryError mine = new OutOfMemoryError("mine");
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE)
            .at(
                function,
                call,
                new After(() -> {
                  throw mine;
                }));
    AppendedFile first = new AppendedFile(calls, root.resolve("first"), new SessionCounters());
    AppendedFile second = new AppendedFile(calls, root.resolve("second"), new SessionCounters());
    assertThatThrownBy(() -> AppendedFile.commit(List.of(first, second))).isSameAs(mine);
    everyFile(root, "after " + function, name -> holds(root, name, OLD));
    assertThat(root).isDirectoryNotContaining(TemporaryName::is);
  }

  @Test
  void whatCannotBeRemovedIsSaidBesides() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE)
            .at(Function.FSYNC, 1, new Fails(Errno.EIO))
            .at(Function.UNLINK, 1, new Fails(Errno.EROFS));
    assertThatThrownBy(() -> write(calls))
        .hasMessageContaining("EIO")
        .satisfies(failure ->
            assertThat(failure.getSuppressed())
                .singleElement()
                .asString()
                .contains("unlink failed", "EROFS"));
    assertThat(root).isDirectoryContaining(TemporaryName::is);
  }

  @Test
  void afterAFailureThereIsNoGoingOn() {
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(Function.PWRITE, 1, new Fails(Errno.ENOSPC));
    try (AppendedFile file =
        new AppendedFile(calls, root.resolve("first"), new SessionCounters())) {
      MemorySegment bytes = MemorySegment.ofArray(NEW);
      assertThatThrownBy(() -> file.append(bytes)).hasMessageContaining("ENOSPC");
      assertThatThrownBy(() -> file.append(bytes))
          .isInstanceOf(MisuseException.class)
          .hasMessageEndingWith(" failed earlier");
      assertThatThrownBy(() -> AppendedFile.commit(List.of(file)))
          .isInstanceOf(MisuseException.class);
    }
    everyFile(root, "after the failure", name -> holds(root, name, OLD));
    assertThat(calls.count(Function.PWRITE)).isEqualTo(1);
  }

  @Test
  void everyFolderIsSynchronised() throws IOException {
    Path other = Files.createDirectory(root.resolve("other"));
    FaultyFileCalls calls =
        new FaultyFileCalls(Libc.INSTANCE).at(Function.FSYNC, 4, new Fails(Errno.EIO));
    AppendedFile first = new AppendedFile(calls, root.resolve("first"), new SessionCounters());
    AppendedFile second = new AppendedFile(calls, other.resolve("second"), new SessionCounters());
    assertThatThrownBy(() -> AppendedFile.commit(List.of(first, second)))
        .hasMessageContaining("fsync failed: " + other + ":");
  }
}
