// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The list of names and sizes that makes several files one set.
///
/// @param sizes the files' sizes by their names, in the order of the set
public record FileList(SequencedMap<String, Long> sizes) {
  /// Tells users in an error what to do about an incomplete set.
  static final String UNFINISHED =
      "their writer is still running, or ended before it had written all; write the set again";

  private static final String HEAD = "gantry-files 1";
  private static final Pattern LINE = Pattern.compile("([0-9]{1,18}) ([^./][^/]*)");
  private static final Pattern NUMBERED = Pattern.compile("(.+)-[0-9]{5,}-of-[0-9]{5,}");
  private static final long MAX_BYTES = 100_000_000;
  private static final int MAX_FILES = 1_000_000;

  /// @throws MalformedFileException if the file is no list that Gantry wrote
  static FileList read(GantrySession session, Location list) {
    Iterator<String> lines = TextFile.read(session, list, MAX_BYTES).lines().iterator();
    if (!lines.hasNext() || !lines.next().equals(HEAD)) {
      throw new MalformedFileException(
          list, 0, "not-a-list", "the first line is not '" + HEAD + "'");
    }
    SequencedMap<String, Long> sizes = new LinkedHashMap<>();
    while (lines.hasNext()) {
      String line = lines.next();
      Matcher parts = LINE.matcher(line);
      if (!parts.matches()) {
        throw new MalformedFileException(
            list, 0, "invalid-line", "a line must have a size and a name: " + line);
      }
      if (sizes.put(parts.group(2), Long.parseLong(parts.group(1))) != null) {
        throw new MalformedFileException(
            list, 0, "duplicate-file", "file '" + parts.group(2) + "' occurs twice");
      }
      if (sizes.size() > MAX_FILES) {
        throw new MalformedFileException(
            list, 0, "too-many-files", "it names more than " + MAX_FILES + " files");
      }
    }
    return new FileList(sizes);
  }

  /// Reads a list as [#read(GantrySession, Location)] does; a missing list names no files.
  static FileList read(GantrySession session, Path list) {
    return Files.exists(list)
        ? read(session, Location.of(list))
        : new FileList(new LinkedHashMap<>());
  }

  /// Makes the list of written files, with the final names that they will get.
  ///
  /// @throws dev.gantry.core.TransferException if a file is missing
  static FileList of(Path work, List<JointFiles.Part> parts) {
    SequencedMap<String, Long> sizes = new LinkedHashMap<>();
    for (JointFiles.Part part : parts) {
      Path file = work.resolve(part.unfinished());
      try {
        sizes.put(part.name(), Files.size(file));
      } catch (IOException e) {
        throw FileErrors.of("stat", file.toString(), e);
      }
    }
    return new FileList(sizes);
  }

  String text() {
    StringBuilder text = new StringBuilder(HEAD).append('\n');
    sizes.forEach((name, size) -> text.append(size).append(' ').append(name).append('\n'));
    return text.toString();
  }

  /// Returns the files of a folder that a reader must read. If the folder is one set, these are
  /// the set's files in order. Otherwise these are all files whose names begin with neither a dot
  /// nor an underscore. A file that is named like a file of a named set counts only if that set's
  /// list names it.
  ///
  /// @throws MalformedFileException if a list is not one that Gantry wrote, or a named file is missing or
  ///     of another size; of kind `no-list` if the folder has files of a set and no list
  public static List<Location> files(Folder folder) {
    Optional<Location> list = folder.file(JointFiles.LIST);
    if (list.isPresent()) {
      return files(folder, list.get());
    }
    List<Location> files = new ArrayList<>(folder.files());
    for (Location file : folder.files()) {
      String name = file.fileName();
      if (JointFiles.NAME.matcher(name).matches()) {
        throw new MalformedFileException(
            folder.location(),
            0,
            "no-list",
            "the folder has files of a set, such as %s, and no %s: %s"
                .formatted(name, JointFiles.LIST, UNFINISHED));
      }
      if (name.startsWith(JointFiles.NAMED_LIST)) {
        Set<Location> listed = new HashSet<>(files(folder, file));
        files.removeIf(other ->
            listFor(other.fileName()).equals(Optional.of(name)) && !listed.contains(other));
      }
    }
    files.removeIf(file -> file.fileName().startsWith(".") || file.fileName().startsWith("_"));
    return List.copyOf(files);
  }

  /// Whether a folder is one set of files; the set may be empty.
  public static boolean isSet(Folder folder) {
    return folder.file(JointFiles.LIST).isPresent();
  }

  /// Returns the files of a folder that a list names.
  ///
  /// @throws MalformedFileException if the file is no list that Gantry wrote, or a named file is missing or
  ///     of another size
  private static List<Location> files(Folder folder, Location list) {
    Map<String, Location> there = new HashMap<>();
    folder.files().forEach(file -> there.put(file.fileName(), file));
    List<Location> files = new ArrayList<>();
    read(folder.session(), list)
        .sizes()
        .forEach((name, size) -> {
          Location file = there.get(name);
          // Sizes are compared for local files alone: an object of a remote store is always
          // complete.
          if (file == null
              || (file instanceof Location.Local(Path path, _) && !leadsTo(path, size))) {
            throw wrongFile(list, name, size);
          }
          files.add(file);
        });
    return List.copyOf(files);
  }

  private static MalformedFileException wrongFile(Location list, String name, long size) {
    return new MalformedFileException(
        list,
        0,
        "wrong-file",
        name + " is missing, or does not have " + size + " bytes: " + UNFINISHED);
  }

  /// Refuses single local files that belong to an incomplete set, by the list beside them. Some files of a
  /// complete set may be read without the others. Files of other stores are not checked.
  ///
  /// @throws MalformedFileException as [#files] throws it
  public static void requireWhole(GantrySession session, List<Location> files) {
    Map<Path, Set<String>> byLists = new LinkedHashMap<>();
    for (Location file : files) {
      if (file instanceof Location.Local(Path path, _)) {
        String name = file.fileName();
        listFor(name)
            .map(path::resolveSibling)
            .ifPresent(list -> byLists.computeIfAbsent(list, _ -> new HashSet<>()).add(name));
      }
    }
    byLists.forEach((list, names) -> {
      SequencedMap<String, Long> sizes = read(session, list).sizes();
      if (names.stream().anyMatch(sizes::containsKey)) {
        sizes.forEach((name, size) -> {
          if (!leadsTo(list.resolveSibling(name), size)) {
            throw wrongFile(Location.of(list), name, size);
          }
        });
      }
    });
  }

  /// Returns the name of the list that a file's set has, derived from the file's name; empty if
  /// the name does not have the form of a set's file.
  private static Optional<String> listFor(String name) {
    Matcher numbered = NUMBERED.matcher(name);
    if (numbered.matches()) {
      return Optional.of(JointFiles.NAMED_LIST + numbered.group(1));
    }
    return JointFiles.NAME.matcher(name).matches()
        ? Optional.of(JointFiles.LIST)
        : Optional.empty();
  }

  /// Whether a path is a file of this size, or a link to one, as in the hub's cache.
  private static boolean leadsTo(Path path, long bytes) {
    return Files.isRegularFile(path) && path.toFile().length() == bytes;
  }

  /// Whether a path is a file of this size, and no link: a writer's own.
  static boolean hasSize(Path file, long bytes) {
    return !Files.isSymbolicLink(file) && leadsTo(file, bytes);
  }
}
