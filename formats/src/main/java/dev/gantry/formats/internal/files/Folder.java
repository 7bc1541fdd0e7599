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

/// A folder of any store that can list files.
///
/// @param session the session whose stores list the folder and open its files
/// @param location the folder's location
/// @param files the files directly in the folder, ordered by name
public record Folder(GantrySession session, Location location, List<Location> files) {
  /// Lists the folder if the location's form says that it is one: a local directory, or a remote
  /// name that is empty or ends in a slash. Otherwise returns empty.
  ///
  /// @throws TransferException if the folder cannot be listed
  public static Optional<Folder> at(GantrySession session, Location location) {
    return switch (location) {
      case Location.Local(Path path, _) when Files.isDirectory(path) ->
          Optional.of(new Folder(session, location, list(path)));
      case Location.Local _ -> Optional.empty();
      case Location.Remote remote when remote.fileName().isEmpty() -> list(session, remote);
      case Location.Remote _ -> Optional.empty();
    };
  }

  /// Lists the folder of a remote name that ends in no slash, after no file of that name was found.
  ///
  /// @param missing the error that says that there is no such file
  public static Optional<Folder> insteadOf(
      GantrySession session, Location location, TransferException missing) {
    return location instanceof Location.Remote remote && missing.isNotFound()
        ? list(session, remote).filter(folder -> !folder.files().isEmpty())
        : Optional.empty();
  }

  /// The location of a file in a remote folder; the folder's name may end in a slash.
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

  /// A link that leads nowhere counts as a file: opening it is an error with its name, and leaving it out would
  /// load a part of the weights.
  private static List<Location> list(Path folder) {
    return FolderEntries.of(folder).stream()
        .filter(file ->
            Files.isRegularFile(file) || (Files.isSymbolicLink(file) && !Files.exists(file)))
        .sorted()
        .map(Location::of)
        .toList();
  }

  /// The folder's file of this name.
  public Optional<Location> file(String name) {
    return files.stream().filter(file -> file.fileName().equals(name)).findFirst();
  }

  /// The folder's files whose names end in a suffix.
  public List<Location> named(String suffix) {
    return files.stream().filter(file -> file.fileName().endsWith(suffix)).toList();
  }
}
