// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.Libc;
import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// What processes tell each other about the page cache that they have registered.
class RegisteredPagesTest {
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

  /// A process that has registered pages, and ends when its input does.
  static final class Program {
    public static void main(String[] arguments) throws IOException {
      new RegisteredPages(Libc.INSTANCE, Path.of(arguments[0])).add(Long.parseLong(arguments[1]));
      System.out.println("added");
      int _ = System.in.read();
    }
  }

  private Process start(long bytes) throws IOException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "--enable-native-access=ALL-UNNAMED",
                "-Xmx64m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path") + File.pathSeparator,
                Program.class.getName(),
                folder.toString(),
                Long.toString(bytes))
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
      // SIGKILL: the process does nothing more.
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
    assertThatThrownBy(() -> HostMemory.reserve(1L << 20).close())
        .isInstanceOf(TransferException.class)
        .hasMessageContaining("ENOMEM");
    other.add(-(1L << 50));
    HostMemory.require(1L << 20);
    pages.add(1L << 50);
    assertThatThrownBy(() -> HostMemory.require(1L << 20)).isInstanceOf(TransferException.class);
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
}
