// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.Memory;
import dev.gantry.core.Source;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.testing.ChildJvm;
import dev.gantry.testing.FaultyFileCalls;
import dev.gantry.testing.NoLeaks;
import dev.gantry.testing.Sessions;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;

/// Killed writers leave files, which are cleared away; the files of running writers stay.
@EnabledOnOs(OS.LINUX)
@Timeout(60)
@ExtendWith(NoLeaks.class)
class LeftoversTest {
  private static final FileCalls CALLS = FileCalls.ofPlatform();

  @TempDir private Path folder;

  /// Begins a file, and commits it after a byte of input.
  static final class Writer {
    public static void main(String[] arguments) throws IOException {
      try (AppendedFile file =
          new AppendedFile(CALLS, Path.of(arguments[0]), new SessionCounters())) {
        file.append(MemorySegment.ofArray(new byte[1 << 20]));
        System.out.println("ready");
        if (System.in.read() >= 0) {
          AppendedFile.commit(List.of(file));
        }
      }
    }
  }

  private Process start() throws IOException {
    Process process =
        ChildJvm.command(List.of(), Writer.class, folder.resolve("theirs"))
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    BufferedReader lines = process.inputReader();
    assertThat(lines.readLine()).isEqualTo("ready");
    return process;
  }

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  private void write(String name) {
    try (AppendedFile file = new AppendedFile(CALLS, folder.resolve(name), new SessionCounters())) {
      AppendedFile.commit(List.of(file));
    }
  }

  @Test
  void theNextWriterRemovesWhatAKilledOneLeft() throws Exception {
    start().destroyForcibly().waitFor();
    assertThat(names()).hasSize(1).allMatch(name -> name.startsWith(".gantry-"));

    write("ours");

    assertThat(names()).containsExactly("ours");
  }

  @Test
  void theFileOfALivingWriterStays() throws Exception {
    Process other = start();
    try {
      write("ours");
      assertThat(names()).hasSize(2);

      other.getOutputStream().write('\n');
      other.getOutputStream().flush();
      assertThat(other.waitFor()).isZero();
    } finally {
      other.destroyForcibly();
    }
    assertThat(names()).containsExactly("ours", "theirs");
  }

  @Test
  void ownFilesAndThoseOfOthersStay() throws IOException {
    Path folderOfThatName =
        Files.createDirectory(folder.resolve(".gantry-0123456789abcdef.held.tmp"));
    Path notHeld = Files.createFile(folder.resolve(".gantry-0123456789abcdef.tmp"));
    try (TargetFile own = TargetFile.create(CALLS, folder.resolve("own"), true, true)) {
      Leftovers.remove(CALLS, folder);

      assertThat(own.file()).exists();
      assertThat(folderOfThatName).exists();
      assertThat(notHeld).exists();
    }
  }

  @Test
  void aSaveRemovesThemToo() throws IOException {
    Path left = Files.createFile(folder.resolve(".gantry-0123456789abcdef.held.tmp"));
    try (GantrySession gantry = GantrySession.open()) {
      gantry.write(
          List.of(new NewFile(folder.resolve("ours"), List.of())), WriteOptions.defaults());
    }
    assertThat(left).doesNotExist();
  }

  @Test
  void theFilesOfASaveAreHeldUntilTheyHaveTheirNames() {
    List<Boolean> held = new ArrayList<>();
    FaultyFileCalls calls = new FaultyFileCalls(CALLS);
    Folders folders = new Folders(CALLS);
    calls.at(
        FaultyFileCalls.Function.RENAME,
        1,
        new FaultyFileCalls.After(() -> {
          try (Stream<Path> files = Files.list(folder)) {
            files.map(folders::isBeingWritten).forEach(held::add);
          } catch (IOException e) {
            throw new UncheckedIOException(e);
          }
        }));
    Source bytes = new Memory.OnHost(MemorySegment.ofArray(new byte[100]));
    try (GantrySession gantry = Sessions.over(calls)) {
      gantry.write(
          List.of(
              new NewFile(folder.resolve("first"), List.of(bytes)),
              new NewFile(folder.resolve("second"), List.of(bytes))),
          WriteOptions.defaults());
    }
    assertThat(held).containsExactly(true, true);
  }
}
