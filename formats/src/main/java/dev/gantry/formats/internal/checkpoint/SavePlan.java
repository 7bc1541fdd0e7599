// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.formats.internal.checkpoint.Manifest.FileEntry;
import dev.gantry.formats.internal.safetensors.DataFileOptions;
import dev.gantry.formats.internal.safetensors.NewSafetensors;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Stream;

/// The files of a checkpoint to be saved, before its folder is chosen. Immutable.
///
/// @param sequence the number of the save
/// @param history ends with this save
/// @param groups the files of each group
record SavePlan(
    long sequence, SaveHistory history, UnsavedCheckpoint checkpoint, List<NewSafetensors> groups) {
  /// A placeholder for the folder, used while only the files' names matter.
  private static final Path NO_FOLDER = Path.of("");

  SavePlan {
    groups = List.copyOf(groups);
  }

  /// @throws dev.gantry.core.MisuseException if a tensor cannot be written under its name
  static SavePlan of(
      UnsavedCheckpoint checkpoint, long sequence, SaveHistory history, long fileBytes) {
    List<NewSafetensors> groups = new ArrayList<>();
    checkpoint
        .groups()
        .forEach((group, tensors) ->
            groups.add(
                NewSafetensors.folder(
                    NO_FOLDER,
                    tensors,
                    checkpoint.metadata(),
                    new DataFileOptions(group, fileBytes, true))));
    checkEntries(checkpoint, history, groups);
    return new SavePlan(sequence, history, checkpoint, groups);
  }

  /// Counts the manifest's entries now, so that too many are refused before anything is written.
  private static void checkEntries(
      UnsavedCheckpoint checkpoint, SaveHistory history, List<NewSafetensors> groups) {
    long entries = checkpoint.state().size();
    entries += history.saves().size();
    entries += checkpoint.metrics().size();
    entries += checkpoint.metadata().size();
    entries += checkpoint.others().size();
    for (NewSafetensors group : groups) {
      entries += group.files().size();
      entries += group.dataFiles().stream().mapToLong(dataFile -> dataFile.tensors().size()).sum();
    }
    if (entries > Manifest.MAX_ENTRIES) {
      throw new MisuseException(
          "a checkpoint of " + entries + " entries, more than " + Manifest.MAX_ENTRIES);
    }
  }

  /// All files but the manifest.
  List<NewFile> files() {
    return Stream.concat(
            groups.stream().flatMap(group -> group.files().stream()), checkpoint.others().stream())
        .toList();
  }

  /// Returns the same files in a folder.
  static List<NewFile> in(Path folder, List<NewFile> files) {
    return files.stream()
        .map(file -> new NewFile(folder.resolve(file.file().getFileName()), file.parts()))
        .toList();
  }

  /// @param report the report on writing [#files]
  Manifest manifest(WriteReport report) {
    Map<String, List<NewTensor>> tensors = new HashMap<>();
    for (NewSafetensors group : groups) {
      group.dataFiles().forEach(dataFile -> tensors.put(dataFile.name(), dataFile.tensors()));
    }
    List<FileEntry> entries = report.files().stream().map(file -> entry(file, tensors)).toList();
    return new Manifest(
        checkpoint.step(),
        sequence,
        history,
        checkpoint.finite(),
        new LinkedHashMap<>(checkpoint.state()),
        new LinkedHashMap<>(checkpoint.metrics()),
        new LinkedHashMap<>(checkpoint.metadata()),
        entries);
  }

  /// @param tensors the tensors of each data file, in the order of the file's parts after the
  ///     header; other files have no tensors
  private static FileEntry entry(
      WriteReport.FileReport file, Map<String, List<NewTensor>> tensors) {
    String name = file.file().getFileName().toString();
    WriteReport.Checksums sums = file.checksums().orElseThrow();
    SequencedMap<String, Integer> byName = new LinkedHashMap<>();
    int part = 1;
    for (NewTensor tensor : tensors.getOrDefault(name, List.of())) {
      byName.put(tensor.name(), sums.parts().get(part));
      part++;
    }
    return new FileEntry(name, file.size(), sums.file(), byName);
  }
}
