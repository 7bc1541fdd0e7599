// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Opens safetensors weights: finds their data files, reads the headers and makes one catalogue of
/// them.
public final class SafetensorsOpener {
  static final String FILE_SUFFIX = ".safetensors";
  static final String INDEX_SUFFIX = ".safetensors.index.json";
  private static final String USUAL_FILE = "model" + FILE_SUFFIX;
  private static final String USUAL_INDEX = "model" + INDEX_SUFFIX;

  /// Matches data files' names that tell how many files there are, such as
  /// `model-00001-of-00003.safetensors`.
  private static final Pattern NUMBERED =
      Pattern.compile("(.*)-[0-9]{5}-of-([0-9]{5})" + Pattern.quote(FILE_SUFFIX), Pattern.DOTALL);

  private SafetensorsOpener() {}

  /// Opens a safetensors file, an index (a name that ends in `.json`), or a folder.
  ///
  /// In a folder, `model.safetensors` alone is opened if it exists: the library that writes the hub's files
  /// reads it first, and leaves an old index beside it. Else the index is opened:
  /// `model.safetensors.index.json`, or the only `*.safetensors.index.json`. In a folder with neither, all
  /// `*.safetensors` are opened together; if their names tell how many files there are, none may be
  /// missing. With an index, only the tensors that it names are in the catalogue.
  ///
  /// @throws MalformedFileException if a header or the index breaks a rule, or if headers and index
  ///     contradict each other: `missing-shard`, `tensor-not-in-shard`, `tensor-in-two-shards`; for a
  ///     folder also `no-safetensors`, `missing-data-files` and `several-indexes`
  /// @throws dev.gantry.core.TransferException if a file or folder cannot be opened or read
  public static WeightsCatalogue open(GantrySession session, Location location) {
    Optional<Folder> folder = Folder.at(session, location);
    if (folder.isPresent()) {
      return openFolder(folder.get());
    }
    try (FileBytes file = FileBytes.open(session, location)) {
      return open(file);
    }
  }

  /// Opens weights by a file that is open, as [#open(GantrySession, Location)] does.
  static WeightsCatalogue open(FileBytes file) {
    return file.file().fileName().endsWith(".json")
        ? openIndex(file.session(), SafetensorsIndex.read(file))
        : openFiles(List.of(SafetensorsHeader.read(file)));
  }

  /// Opens a local file or folder, as [#open(GantrySession, Location)] does.
  public static WeightsCatalogue open(GantrySession session, Path path) {
    return open(session, Location.of(path));
  }

  /// Whether any of the files is a data file or an index of this format.
  static boolean isAmong(List<Location> files) {
    return files.stream()
        .map(Location::fileName)
        .anyMatch(name -> name.endsWith(FILE_SUFFIX) || name.endsWith(INDEX_SUFFIX));
  }

  static WeightsCatalogue openFolder(Folder folder) {
    Optional<Location> usual = folder.file(USUAL_FILE);
    if (usual.isPresent()) {
      return openFiles(List.of(SafetensorsHeader.read(folder.session(), usual.get())));
    }
    List<Location> indexes = folder.named(INDEX_SUFFIX);
    for (Location index : indexes) {
      if (indexes.size() == 1 || index.fileName().equals(USUAL_INDEX)) {
        return openIndex(folder.session(), SafetensorsIndex.read(folder.session(), index));
      }
    }
    if (!indexes.isEmpty()) {
      throw new MalformedFileException(
          folder.location(),
          0,
          "several-indexes",
          "%s indexes and none is %s; open one of them by its name"
              .formatted(indexes.size(), USUAL_INDEX));
    }
    List<Location> files = folder.named(FILE_SUFFIX);
    if (files.isEmpty()) {
      throw new MalformedFileException(
          folder.location(),
          0,
          "no-safetensors",
          "the folder has no *" + FILE_SUFFIX + " and no index");
    }
    requireAll(files);
    return openFiles(
        files.stream().map(file -> SafetensorsHeader.read(folder.session(), file)).toList());
  }

  /// Requires all data files of a folder without an index, whose writer may have stopped early: names such
  /// as `model-00001-of-00003.safetensors` tell how many there must be.
  private static void requireAll(List<Location> files) {
    Map<String, List<Location>> sets = new TreeMap<>();
    for (Location file : files) {
      Matcher name = NUMBERED.matcher(file.fileName());
      if (name.matches()) {
        String set = name.group(1) + " of " + Integer.parseInt(name.group(2));
        sets.computeIfAbsent(set, _ -> new ArrayList<>()).add(file);
      }
    }
    sets.forEach((set, found) -> {
      int count = Integer.parseInt(set.substring(set.lastIndexOf(' ') + 1));
      if (found.size() < count) {
        throw new MalformedFileException(
            found.getFirst(),
            0,
            "missing-data-files",
            "there is no index, and " + found.size() + " of " + count + " data files");
      }
    });
  }

  /// Makes the catalogue of all tensors of all files, without an index.
  private static WeightsCatalogue openFiles(List<SafetensorsHeader> files) {
    if (files.size() == 1) {
      SafetensorsHeader only = files.getFirst();
      return catalogue(List.of(only.file()), only.tensors(), only.metadata());
    }
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    SequencedMap<String, String> metadata = new LinkedHashMap<>();
    for (SafetensorsHeader header : files) {
      header.metadata().forEach(metadata::putIfAbsent);
      for (StoredTensor tensor : header.tensors().values()) {
        StoredTensor earlier = tensors.putIfAbsent(tensor.name(), tensor);
        if (earlier != null) {
          throw new MalformedFileException(
              header.file(),
              tensor.extent().offset(),
              "tensor-in-two-shards",
              "tensor '" + tensor.name() + "' is also in " + earlier.extent().file());
        }
      }
    }
    return catalogue(files.stream().map(SafetensorsHeader::file).toList(), tensors, metadata);
  }

  /// Makes the catalogue of the tensors that the index names, each from its data file there.
  private static WeightsCatalogue openIndex(Session session, SafetensorsIndex index) {
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    SequencedMap<String, String> metadata = new LinkedHashMap<>();
    Map<String, Location> elsewhere = new HashMap<>();
    SequencedMap<String, Location> files = dataFiles(index);
    files.forEach((name, file) -> {
      SafetensorsHeader header = SafetensorsHeader.read(session, file);
      header.metadata().forEach(metadata::putIfAbsent);
      for (StoredTensor tensor : header.tensors().values()) {
        SafetensorsIndex.Entry entry = index.weightMap().get(tensor.name());
        if (entry != null && entry.dataFile().equals(name)) {
          tensors.put(tensor.name(), tensor);
        } else if (entry != null) {
          elsewhere.putIfAbsent(tensor.name(), file);
        }
      }
    });
    index.weightMap().forEach((name, entry) -> agree(index, name, entry, tensors, elsewhere));
    return catalogue(List.copyOf(files.values()), tensors, metadata);
  }

  private static WeightsCatalogue catalogue(
      List<Location> files,
      SequencedMap<String, StoredTensor> tensors,
      SequencedMap<String, String> metadata) {
    return new WeightsCatalogue(
        SafetensorsFormat.NAME, files, tensors.values(), metadata, List.of());
  }

  /// Returns the index's data files ordered by name, after it has checked that each exists.
  private static SequencedMap<String, Location> dataFiles(SafetensorsIndex index) {
    SequencedMap<String, Location> files = new TreeMap<>();
    index
        .weightMap()
        .forEach((tensor, entry) -> {
          if (files.containsKey(entry.dataFile())) {
            return;
          }
          Location file = index.file().sibling(entry.dataFile());
          if (file instanceof Location.Local(Path path, _) && !Files.exists(path)) {
            throw new MalformedFileException(
                index.file(),
                entry.offset(),
                "missing-shard",
                "'" + entry.dataFile() + "' with tensor '" + tensor + "' is not there");
          }
          files.put(entry.dataFile(), file);
        });
    return files;
  }

  private static void agree(
      SafetensorsIndex index,
      String name,
      SafetensorsIndex.Entry entry,
      Map<String, StoredTensor> tensors,
      Map<String, Location> elsewhere) {
    Location other = elsewhere.get(name);
    if (!tensors.containsKey(name)) {
      throw new MalformedFileException(
          index.file(),
          entry.offset(),
          "tensor-not-in-shard",
          "tensor '%s' is not in '%s'%s"
              .formatted(name, entry.dataFile(), other == null ? "" : " but in " + other));
    }
    if (other != null) {
      throw new MalformedFileException(
          index.file(),
          entry.offset(),
          "tensor-in-two-shards",
          "tensor '" + name + "' is in '" + entry.dataFile() + "' and in " + other);
    }
  }
}
