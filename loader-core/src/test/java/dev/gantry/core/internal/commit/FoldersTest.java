// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.FaultyFileCalls.Fails;
import dev.gantry.testing.FaultyFileCalls.Function;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// Calls on the entries of a folder, and the errors of failed calls. [WriteCrashTest] shows that
/// changes of entries are durable.
@ExtendWith(NoLeaks.class)
@Tag("jdk-files")
class FoldersTest {
  private final FaultyFileCalls calls = new FaultyFileCalls(Libc.INSTANCE);
  private final Folders folders = new Folders(calls);

  @TempDir Path root;

  private static TransferException failureOf(ThrowingCallable call) {
    return catchThrowableOfType(TransferException.class, call);
  }

  private static String words(Errno errno) {
    return Errno.failure(errno.code()).describe();
  }

  @Test
  void makesAFolderAndSynchronisesItsParent() {
    folders.create(root.resolve("made"));
    assertThat(root.resolve("made")).isDirectory();
    assertThat(calls.count(Function.FSYNC)).isEqualTo(1);
  }

  @Test
  void aFolderThatIsThereAlready() {
    assertThat(failureOf(() -> folders.create(root)))
        .hasMessage("mkdir failed: %s: %s", root, words(Errno.EEXIST));
  }

  @Test
  void aHomeFolderThatNoShellHasExpandedIsNotMade() {
    Path home = root.resolve("~");
    assertThatThrownBy(() -> Folders.makePrivate(home.resolve("cache")))
        .isInstanceOf(MisuseException.class)
        .hasMessage(
            "%s/cache: there is no such folder; only shells take ~ for the home folder", home);
    assertThat(home).doesNotExist();
  }

  @Test
  void aFolderWhoseNameIsWhatIsLeftOfAUrlIsNotMade() {
    for (String url : List.of("s3://bucket/run", "HTTPS://host/x", "hf://a/b", "file:///x")) {
      assertThatThrownBy(() -> Folders.requireMakeable(Path.of(url)))
          .as(url)
          .isInstanceOf(MisuseException.class)
          .hasMessage(
              "%s: there is no such folder; a Path holds no URL, and a path of this name begins"
                  + " with ./",
              Path.of(url));
    }
  }

  @Test
  void aFolderWithAColonInItsNameIsMade() {
    for (String name : List.of("step:/x", "s3:x", "./s3:/x", "a/s3:/x")) {
      assertThatCode(() -> Folders.requireMakeable(Path.of(name))).doesNotThrowAnyException();
    }
  }

  @Test
  void aFolderInNone() {
    Path orphan = root.resolve("missing/made");
    assertThat(failureOf(() -> folders.create(orphan)))
        .hasMessage("mkdir failed: %s: %s", orphan, words(Errno.ENOENT));
  }

  @Test
  void removesFilesAndEmptyFolders() throws IOException {
    Path file = Files.writeString(root.resolve("file"), "text");
    Path folder = Files.createDirectory(root.resolve("folder"));
    folders.removeFile(file);
    folders.removeFolder(folder);
    assertThat(root).isEmptyDirectory();
    // A file or folder that is already gone is no failure.
    assertThatCode(() -> folders.removeFile(file)).doesNotThrowAnyException();
    assertThatCode(() -> folders.removeFolder(folder)).doesNotThrowAnyException();
  }

  @Test
  void whatCannotBeRemoved() throws IOException {
    Path file = Files.writeString(root.resolve("file"), "text");
    assertThat(failureOf(() -> folders.removeFolder(root)))
        .hasMessage("rmdir failed: %s: %s", root, words(Errno.ENOTEMPTY));
    calls.at(Function.UNLINK, 1, new Fails(Errno.EROFS));
    assertThat(failureOf(() -> folders.removeFile(file)))
        .hasMessage("unlink failed: %s: %s", file, words(Errno.EROFS));
    assertThat(file).exists();
  }

  @Test
  void aRenameSaysBothNames() {
    Path from = root.resolve("from");
    Path to = root.resolve("to");
    assertThat(failureOf(() -> folders.rename(from, to)))
        .hasMessage("rename failed: %s to %s: %s", from, to, words(Errno.ENOENT));
  }

  @Test
  void anInterruptedOpenIsMadeAgain() {
    calls.at(Function.OPEN, 1, new Fails(Errno.EINTR)).at(Function.OPEN, 2, new Fails(Errno.EINTR));
    folders.sync(root);
    assertThat(calls.count(Function.OPEN)).isEqualTo(3);
  }

  @ParameterizedTest
  @EnumSource(names = {"EIO", "EINTR", "EINVAL"})
  void aFailedSyncIsNeverMadeAgainAndLeavesNoDescriptor(Errno errno) {
    calls.at(Function.FSYNC, 1, new Fails(errno));
    assertThat(failureOf(() -> folders.sync(root)))
        .hasMessage("fsync failed: %s: %s", root, words(errno));
    assertThat(calls.count(Function.FSYNC)).isEqualTo(1);
    assertThat(calls.count(Function.CLOSE)).isEqualTo(1);
  }

  @Test
  void theFolderOfABareName() {
    assertThat(Folders.parent(Path.of("file"))).isEqualTo(Path.of("."));
    assertThat(Folders.parent(Path.of("/file"))).isEqualTo(Path.of("/"));
  }

  @Test
  void aFolderThatMayNotLastIsNotLeftForTheNextTry() {
    calls.at(Function.FSYNC, 1, new Fails(Errno.EIO));
    Path made = root.resolve("made");
    assertThat(failureOf(() -> folders.create(made)))
        .hasMessage("fsync failed: %s: %s", root, words(Errno.EIO));
    folders.create(made);
    assertThat(made).isDirectory();
  }
}
