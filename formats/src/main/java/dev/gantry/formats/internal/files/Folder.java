// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;

/// A folder of any store that can list.
///
/// @param session by whose stores it was listed, and its files are opened
/// @param location of the folder
/// @param files that lie in it, in the order of their names, without those in folders within
public record Folder(GantrySession session, Location location, List<Location> files) {
  /// The folder, if the location names one without asking the store for a file: a local directory, or a remote name that
  /// is empty or ends in a slash. Else empty.
  ///
  /// @throws TransferException if it cannot be listed
  public static Optional<Folder> at(GantrySession session, Location location) {
    return switch (location) {
      case Location.Local(Path path, _) when Files.isDirectory(path) ->
          Optional.of(new Folder(session, location, list(path)));
      case Location.Local _ -> Optional.empty();
      case Location.Remote remote when remote.fileName().isEmpty() -> list(session, remote);
      case Location.Remote _ -> Optional.empty();
    };
  }

  /// The folder of a name without a slash at its end, of which there is no file.
  ///
  /// @param missing why the file was not opened
  public static Optional<Folder> insteadOf(
      GantrySession session, Location location, TransferException missing) {
    return location instanceof Location.Remote remote && missing.isNotFound()
        ? list(session, remote).filter(folder -> !folder.files().isEmpty())
        : Optional.empty();
  }

  /// A file in a remote folder, whose name may end in a slash.
  public static Location child(Location.Remote folder, String name) {
    String last = folder.fileName();
    return last.isEmpty() ? folder.sibling(name) : folder.sibling(last + "/").sibling(name);
  }

  private static Optional<Folder> list(GantrySession session, Location.Remote location) {
    return session
        .list(location)
        .map(files ->
            new Folder(
                session,
                location,
                files.stream().sorted(Comparator.comparing(Location::fileName)).toList()));
  }

  private static List<Location> list(Path folder) {
    return FolderEntries.of(folder).stream()
        .filter(Files::isRegularFile)
        .sorted()
        .map(Location::of)
        .toList();
  }

  /// The file of this name.
  public Optional<Location> file(String name) {
    return files.stream().filter(file -> file.fileName().equals(name)).findFirst();
  }

  /// Those whose names end so.
  public List<Location> named(String suffix) {
    return files.stream().filter(file -> file.fileName().endsWith(suffix)).toList();
  }
}
