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

/// The files that a path stands for.
final class TfRecordFiles {
  private TfRecordFiles() {}

  /// A file; or of a folder the files of the set that was written there, or all whose names begin with
  /// neither a dot nor an underscore, indexes aside.
  ///
  /// @throws MisuseException if the folder has none, and no set was written there
  /// @throws dev.gantry.core.MalformedFileException if the set is not whole
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
