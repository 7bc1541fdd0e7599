// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.ForwardingFileCalls;
import dev.gantry.testing.NoLeaks;
import java.io.BufferedReader;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Processes share how many bytes of the page cache each of them has registered.
@ExtendWith(NoLeaks.class)
class RegisteredPagesTest {
  private static final int NOBODY = 65_534;

  @TempDir Path parent;
  private final RegisteredPages before = HostMemory.registered;
  private Path folder;
  private RegisteredPages pages;

  @BeforeEach
  void open() {
    folder = parent.resolve("pages");
    pages = new RegisteredPages(Libc.INSTANCE, folder);
  }

  @AfterEach
  void forget() {
    pages.add(-pages.ownBytes());
    HostMemory.registered = before;
    HostMemory.look();
  }

  /// A process that has registered pages, and ends when its input ends.
  static final class Program {
    public static void main(String[] arguments) throws IOException {
      new RegisteredPages(Libc.INSTANCE, Path.of(arguments[0])).add(Long.parseLong(arguments[1]));
      System.out.println("added");
      int _ = System.in.read();
    }
  }

  private Process start(long bytes) throws IOException {
    Process process =
        ChildJvm.command(List.of("-Xmx64m"), Program.class, folder, bytes)
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader out = process.inputReader();
    assertThat(out.readLine()).isEqualTo("added");
    return process;
  }

  @Test
  void processesCountAsLongAsTheyLive() throws Exception {
    assertThat(pages.bytes()).isZero();
    Process first = start(1000);
    Process second = start(200);
    try {
      pages.add(30);
      assertThat(pages.bytes()).isEqualTo(1230);
      assertThat(pages.ownBytes()).isEqualTo(30);
      // SIGKILL ends the process before it can withdraw its count.
      first.destroyForcibly().waitFor();
      assertThat(pages.bytes()).isEqualTo(230);
      pages.add(-10);
      assertThat(pages.bytes()).isEqualTo(220);
    } finally {
      first.destroyForcibly().waitFor();
      second.destroyForcibly().waitFor();
    }
    assertThat(pages.bytes()).isEqualTo(20);
    RegisteredPages next = new RegisteredPages(Libc.INSTANCE, folder);
    next.add(4);
    assertThat(pages.bytes()).as("in a place that an ended process had").isEqualTo(24);
    next.add(-4);
  }

  @Test
  void whatOthersHaveRegisteredIsNotAvailable() {
    RegisteredPages other = new RegisteredPages(Libc.INSTANCE, folder);
    other.add(1L << 50);
    HostMemory.registered = pages;
    HostMemory.look();
    assertThatThrownBy(() -> Admission.ofHost(1L << 20).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOMEM");
    other.add(-(1L << 50));
    Admission.ofHost(1L << 20).close();
    pages.add(1L << 50);
    assertThatThrownBy(() -> Admission.ofHost(1L << 20).close())
        .isInstanceOf(TransferException.class);
  }

  @Test
  void aFolderThatOthersMayWriteToDoesNotCount() throws IOException {
    Files.createDirectory(folder);
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwxrwxrwx"));
    pages.add(5);
    assertThat(pages.bytes()).isEqualTo(5);
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  void aLinkIsNotFollowed() throws IOException {
    Path elsewhere = Files.createDirectory(parent.resolve("elsewhere"));
    Files.setPosixFilePermissions(elsewhere, PosixFilePermissions.fromString("rwx------"));
    Files.createSymbolicLink(folder, elsewhere);
    pages.add(5);
    assertThat(pages.bytes()).isEqualTo(5);
    assertThat(elsewhere).isEmptyDirectory();
  }

  @Test
  void whatAnotherUserOwnsDoesNotCount() throws IOException {
    assumeTrue("root".equals(System.getProperty("user.name")), "only root gives files away");
    RegisteredPages other = new RegisteredPages(Libc.INSTANCE, folder);
    other.add(7);
    Path file = folder.resolve("registered");
    Files.setAttribute(file, "unix:uid", NOBODY);
    assertThat(pages.bytes()).as("the file is another user's").isZero();
    Files.setAttribute(file, "unix:uid", 0);
    assertThat(pages.bytes()).isEqualTo(7);
    Files.setAttribute(folder, "unix:uid", NOBODY);
    assertThat(pages.bytes()).as("the folder is another user's").isZero();
    Files.setAttribute(folder, "unix:uid", 0);
    other.add(-7);
  }

  @Test
  void aLinkInTheFolderIsNotFollowed() throws IOException {
    RegisteredPages other = new RegisteredPages(Libc.INSTANCE, parent.resolve("elsewhere"));
    other.add(7);
    Files.createDirectory(folder);
    Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("rwx------"));
    Files.createSymbolicLink(folder.resolve("registered"), parent.resolve("elsewhere/registered"));
    pages.add(5);
    assertThat(pages.bytes()).isEqualTo(5);
    other.add(-7);
  }

  /// Some systems delete a user's files in `/dev/shm` at the end of the user's session.
  @Test
  void aFileThatWasDeletedIsMadeAnewByThoseWhoCount() throws IOException {
    RegisteredPages other = new RegisteredPages(Libc.INSTANCE, folder);
    pages.add(5);
    other.add(7);
    Files.delete(folder.resolve("registered"));
    Files.delete(folder);
    RegisteredPages third = new RegisteredPages(Libc.INSTANCE, folder);
    third.add(100);
    assertThat(pages.bytes()).isEqualTo(105);
    assertThat(other.bytes()).isEqualTo(112);
    assertThat(third.bytes()).isEqualTo(112);
    other.add(-7);
    third.add(-100);
    assertThat(pages.bytes()).isEqualTo(5);
  }

  @Test
  void theOwnNumberIsKnownWhereNoFolderCanBeMade() throws IOException {
    for (Path impossible :
        List.of(
            parent.resolve("missing/pages"),
            Files.createFile(parent.resolve("file")).resolve("pages"))) {
      RegisteredPages alone = new RegisteredPages(Libc.INSTANCE, impossible);
      alone.add(5);
      assertThat(alone.bytes()).isEqualTo(5);
      alone.add(-5);
      assertThat(alone.bytes()).isZero();
    }
  }

  @Test
  void theOwnNumberIsKnownWhereTheFolderIsFull() {
    RegisteredPages full =
        new RegisteredPages(
            new ForwardingFileCalls(Libc.INSTANCE) {
              @Override
              public long pwrite(int fd, MemorySegment source, long length, long offset) {
                return -Errno.ENOSPC.code();
              }
            },
            folder);
    full.add(5);
    assertThat(full.bytes()).isEqualTo(5);
    full.add(-5);
    assertThat(full.bytes()).isZero();
    pages.add(3);
    assertThat(pages.bytes()).as("the place is free again").isEqualTo(3);
  }
}
