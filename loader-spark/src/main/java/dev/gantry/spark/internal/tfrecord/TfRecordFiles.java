// SPDX-License-Identifier: Apache-2.0
package dev.gantry.spark.internal.tfrecord;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.index.TfRecordIndex;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/// Finds the TFRecord files of a path.
final class TfRecordFiles {
  private TfRecordFiles() {}

  /// Returns the file itself, or the files of a folder: those of the set that was written there,
  /// or else all files except indexes and those whose names begin with a dot or an underscore.
  ///
  /// @throws MisuseException if the folder has no such file, and no set was written there
  /// @throws dev.gantry.core.MalformedFileException if a file of the set is missing
  static List<Path> of(Path path) {
    Optional<Folder> folder = Folder.at(GantrySession.shared(), Location.of(path));
    if (folder.isEmpty()) {
      FileList.requireWhole(GantrySession.shared(), List.of(Location.of(path)));
      return List.of(path);
    }
    List<Path> files =
        FileList.files(folder.get()).stream()
            .map(Location::path)
            .filter(file -> !file.toString().endsWith(TfRecordIndex.SUFFIX))
            .toList();
    if (files.isEmpty() && !FileList.isSet(folder.get())) {
      throw new MisuseException(path + " has no TFRecord files");
    }
    return files;
  }
}
