// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.MemoryFolder;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileListTest {
  @TempDir(factory = MemoryFolder.class)
  Path folder;

  private FileList read(String lines) throws IOException {
    Path list = Files.writeString(folder.resolve(JointFiles.LIST), "gantry-files 1\n" + lines);
    return FileList.read(GantrySession.shared(), Location.of(list));
  }

  @Test
  void aListNamesEachFileOnce() throws IOException {
    assertThat(read("1 a\n2 b\n").sizes()).containsExactlyEntriesOf(read("1 a\n2 b").sizes());
    assertThatThrownBy(() -> read("1 a\n2 b\n3 a\n"))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("file 'a' occurs twice");
  }

  /// A writer of sets removes its own files, and makes no links.
  @Test
  void aLinkIsNoFileOfAWriter() throws IOException {
    Path file = Files.write(folder.resolve("a"), new byte[3]);
    Path link = Files.createSymbolicLink(folder.resolve("b"), file);
    assertThat(FileList.hasSize(file, 3)).isTrue();
    assertThat(FileList.hasSize(file, 2)).isFalse();
    assertThat(FileList.hasSize(link, 3)).isFalse();
  }

  /// Each name takes some hundred bytes of heap, also one of a few characters.
  @Test
  void aListNamesAtMostAMillionFiles() {
    String lines =
        IntStream.rangeClosed(0, 1_000_000)
            .mapToObj(i -> "1 " + Integer.toString(i, Character.MAX_RADIX))
            .collect(Collectors.joining("\n"));
    assertThatThrownBy(() -> read(lines))
        .isInstanceOf(MalformedFileException.class)
        .hasMessageContaining("more than 1000000 files");
  }
}
