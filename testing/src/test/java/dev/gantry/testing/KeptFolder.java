// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/// A saved state of a folder's files: their bytes, their inodes and their modification times.
final class KeptFolder {
  /// @param link a hard link to the file in another folder, which keeps its inode
  @SuppressWarnings("ArrayRecordComponent") // Nothing compares them as records.
  private record Kept(Path file, Path link, byte[] bytes, FileTime modified) {}

  private final Path folder;
  private final List<Kept> files = new ArrayList<>();

  private KeptFolder(Path folder) {
    this.folder = folder;
  }

  /// Saves the current files of a folder.
  static KeptFolder of(Path folder) throws IOException {
    KeptFolder made = new KeptFolder(folder);
    Path links = Files.createTempDirectory(folder.getParent(), "kept");
    for (Path file : files(folder)) {
      Path link = Files.createLink(links.resolve(file.getFileName()), file);
      FileTime modified = Files.getLastModifiedTime(file);
      made.files.add(new Kept(file, link, Files.readAllBytes(file), modified));
    }
    return made;
  }

  private static List<Path> files(Path folder) throws IOException {
    try (Stream<Path> all = Files.list(folder)) {
      return all.toList();
    }
  }

  void restore() throws IOException {
    for (Path file : files(folder)) {
      Files.delete(file);
    }
    for (Kept kept : files) {
      Path _ = Files.createLink(kept.file(), kept.link());
      Path _ = Files.write(kept.file(), kept.bytes(), StandardOpenOption.TRUNCATE_EXISTING);
      Path _ = Files.setLastModifiedTime(kept.file(), kept.modified());
    }
  }
}
