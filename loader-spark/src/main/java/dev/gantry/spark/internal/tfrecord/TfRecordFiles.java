// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.files.FolderEntries;
import dev.gantry.formats.internal.files.JointFiles;
import dev.gantry.formats.internal.index.TfRecordIndex;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/// The files that a path stands for.
final class TfRecordFiles {
  private TfRecordFiles() {}

  /// A file; or of a folder the files of the set that was written there, or all whose names begin with
  /// neither a dot nor an underscore, indexes aside.
  ///
  /// @throws MisuseException if the folder has none
  static List<Path> of(Path path) {
    if (!Files.isDirectory(path)) {
      return List.of(path);
    }
    List<Path> files =
        JointFiles.open(path)
            .orElseGet(() ->
                FolderEntries.of(path).stream().filter(Files::isRegularFile).sorted().toList())
            .stream()
            .filter(TfRecordFiles::isData)
            .toList();
    if (files.isEmpty()) {
      throw new MisuseException(path + " has no TFRecord files");
    }
    return files;
  }

  private static boolean isData(Path file) {
    String name = String.valueOf(file.getFileName());
    return !name.startsWith(".") && !name.startsWith("_") && !name.endsWith(TfRecordIndex.SUFFIX);
  }
}
