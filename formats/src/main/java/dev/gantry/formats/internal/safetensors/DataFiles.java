// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.safetensors;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.Session;
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
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// Finds the data files of weights in a folder or by an index, and joins their tensors. The hub's writers
/// name files of several formats in the same way, and write the same index.
///
/// @param format the format's name, as catalogues have it
/// @param stem the start of the usual names, such as `model`
/// @param suffix the end of data files' names, such as `.safetensors`
/// @param reader reads one data file
public record DataFiles(
    String format, String stem, String suffix, Function<FileBytes, WeightsCatalogue> reader) {
  private static final String JSON = ".index.json";

  /// The suffix of the names of indexes.
  public String indexSuffix() {
    return suffix + JSON;
  }

  /// Opens a data file or an index that is open.
  public WeightsCatalogue open(FileBytes file) {
    return file.file().fileName().endsWith(".json")
        ? openIndex(file.session(), SafetensorsIndex.read(file))
        : reader.apply(file);
  }

  /// Whether any of the files is a data file or an index.
  public boolean isAmong(List<Location> files) {
    return files.stream()
        .map(Location::fileName)
        .anyMatch(name -> name.endsWith(suffix) || name.endsWith(indexSuffix()));
  }

  private WeightsCatalogue read(Session session, Location file) {
    try (FileBytes bytes = FileBytes.open(session, file)) {
      return reader.apply(bytes);
    }
  }

  /// Opens the usual file of a folder if it exists; otherwise the folder's index if there is one;
  /// otherwise all data files together, none of which may be missing.
  ///
  /// @throws MalformedFileException of kind `no-weights`, `missing-data-files` or `several-indexes`, or if
  ///     index and data files contradict each other
  public WeightsCatalogue openFolder(Folder folder) {
    Optional<Location> usual = folder.file(stem + suffix);
    if (usual.isPresent()) {
      return read(folder.session(), usual.get());
    }
    List<Location> indexes = folder.named(indexSuffix());
    for (Location index : indexes) {
      if (indexes.size() == 1 || index.fileName().equals(stem + indexSuffix())) {
        return openIndex(folder.session(), SafetensorsIndex.read(folder.session(), index));
      }
    }
    if (!indexes.isEmpty()) {
      throw new MalformedFileException(
          folder.location(),
          0,
          "several-indexes",
          "%s indexes and none is %s; open one of them by its name"
              .formatted(indexes.size(), stem + indexSuffix()));
    }
    List<Location> files = folder.named(suffix);
    if (files.isEmpty()) {
      throw new MalformedFileException(
          folder.location(), 0, "no-" + format, "the folder has no *" + suffix + " and no index");
    }
    requireAll(files);
    return openFiles(files.stream().map(file -> read(folder.session(), file)).toList());
  }

  /// Requires all data files of a folder without an index, whose writer may have stopped early: names such
  /// as `model-00001-of-00003.safetensors` tell how many there must be.
  private void requireAll(List<Location> files) {
    Pattern numbered =
        Pattern.compile("(.*)-[0-9]{5}-of-([0-9]{5})" + Pattern.quote(suffix), Pattern.DOTALL);
    Map<String, List<Location>> sets = new TreeMap<>();
    for (Location file : files) {
      Matcher name = numbered.matcher(file.fileName());
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
            "the folder has no index, and only " + found.size() + " of " + count + " data files");
      }
    });
  }

  /// Makes the catalogue of all tensors of all files, without an index.
  private WeightsCatalogue openFiles(List<WeightsCatalogue> files) {
    if (files.size() == 1) {
      return files.getFirst();
    }
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    for (WeightsCatalogue file : files) {
      for (StoredTensor tensor : file.tensors().values()) {
        StoredTensor earlier = tensors.putIfAbsent(tensor.name(), tensor);
        if (earlier != null) {
          throw new MalformedFileException(
              tensor.extent().file(),
              tensor.extent().offset(),
              "tensor-in-two-shards",
              "tensor '" + tensor.name() + "' is also in " + earlier.extent().file());
        }
      }
    }
    return joined(files, tensors);
  }

  /// Makes the catalogue of the tensors that the index names, each from the data file that the
  /// index gives.
  private WeightsCatalogue openIndex(Session session, SafetensorsIndex index) {
    SequencedMap<String, StoredTensor> tensors = new LinkedHashMap<>();
    Map<String, Location> elsewhere = new HashMap<>();
    List<WeightsCatalogue> catalogues = new ArrayList<>();
    dataFiles(index)
        .forEach((name, file) -> {
          WeightsCatalogue catalogue = read(session, file);
          catalogues.add(catalogue);
          for (StoredTensor tensor : catalogue.tensors().values()) {
            SafetensorsIndex.Entry entry = index.weightMap().get(tensor.name());
            if (entry != null && entry.dataFile().equals(name)) {
              tensors.put(tensor.name(), tensor);
            } else if (entry != null) {
              elsewhere.putIfAbsent(tensor.name(), file);
            }
          }
        });
    index.weightMap().forEach((name, entry) -> agree(index, name, entry, tensors, elsewhere));
    return joined(catalogues, tensors);
  }

  /// @param tensors the tensors of the files that belong to the weights
  private WeightsCatalogue joined(
      List<WeightsCatalogue> files, SequencedMap<String, StoredTensor> tensors) {
    SequencedMap<String, String> metadata = new LinkedHashMap<>();
    files.forEach(file -> file.metadata().forEach(metadata::putIfAbsent));
    return new WeightsCatalogue(
        format,
        files.stream().flatMap(file -> file.files().stream()).toList(),
        tensors.values(),
        metadata,
        files.stream().flatMap(file -> file.checksums().stream()).toList());
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
                "the file '" + entry.dataFile() + "' of tensor '" + tensor + "' does not exist");
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
