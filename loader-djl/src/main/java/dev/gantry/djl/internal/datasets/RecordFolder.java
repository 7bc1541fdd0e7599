// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.FileList;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.NamePatterns;
import dev.gantry.formats.internal.index.TfRecordIndex;
import dev.gantry.formats.shards.ShardSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// Finds TFRecord files that the caller names file by file or by their folder.
public final class RecordFolder {
  private RecordFolder() {}

  /// @param option the option that names the locations, for errors
  /// @throws MisuseException if a file is missing, or a folder has no file, holds raw shards, or is
  ///     in a store that cannot list
  /// @throws dev.gantry.core.MalformedFileException if a numbered set of files is incomplete
  public static List<Location> files(
      GantrySession session, String option, List<Location> locations) {
    List<Location> files = new ArrayList<>();
    List<Location> named = new ArrayList<>();
    for (Location location : locations) {
      Optional<Folder> folder = Folder.at(session, location);
      if (folder.isPresent()) {
        if (folder.get().file(ShardSet.FILE_NAME).isPresent()) {
          throw new MisuseException(
              ("%s: the folder %s holds raw shards (%s), which a ShardDataset reads, "
                      + "and no TFRecord files")
                  .formatted(option, location, ShardSet.FILE_NAME));
        }
        List<Location> found =
            FileList.files(folder.get()).stream()
                .filter(file -> !file.fileName().endsWith(TfRecordIndex.SUFFIX))
                .toList();
        if (found.isEmpty()) {
          throw new MisuseException(option + ": the folder " + location + " has no TFRecord files");
        }
        files.addAll(found);
      } else if (location.fileName().isEmpty()) {
        throw new MisuseException(option + ": the store cannot list the folder " + location);
      } else {
        files.add(location);
        named.add(location);
      }
    }
    FileList.requireWhole(session, named);
    named.forEach(file -> NamePatterns.requireThere(option, file));
    return List.copyOf(files);
  }
}
