package dev.gantry.formats.checkpoint;

import dev.gantry.core.commit.NewFile;
import dev.gantry.core.commit.WriteReport;
import dev.gantry.formats.checkpoint.Manifest.FileEntry;
import dev.gantry.formats.safetensors.NewTensor;
import dev.gantry.formats.safetensors.ShardedFiles;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Which files a checkpoint becomes, in a folder that is chosen later. Immutable.
///
/// @param sequence the number of the save
/// @param groups the files of each group
record SavePlan(long sequence, UnsavedCheckpoint checkpoint, List<ShardedFiles> groups) {
  /// For the names alone.
  private static final Path NO_FOLDER = Path.of("");

  SavePlan {
    groups = List.copyOf(groups);
  }

  /// @throws dev.gantry.core.MisuseException if a tensor cannot be written under its name
  static SavePlan of(UnsavedCheckpoint checkpoint, long sequence, long shardBytes) {
    List<ShardedFiles> groups = new ArrayList<>();
    checkpoint
        .groups()
        .forEach((group, tensors) ->
            groups.add(
                ShardedFiles.of(NO_FOLDER, group, tensors, checkpoint.metadata(), shardBytes)));
    return new SavePlan(sequence, checkpoint, groups);
  }

  /// In the order in which they get their names: of a group, the shards and then the index.
  List<NewFile> files() {
    List<NewFile> files = new ArrayList<>();
    for (ShardedFiles group : groups) {
      group.shards().forEach(shard -> files.add(shard.file()));
      files.add(group.index());
    }
    return files;
  }

  /// The same files in a folder.
  static List<NewFile> in(Path folder, List<NewFile> files) {
    return files.stream()
        .map(file -> new NewFile(folder.resolve(file.file().getFileName()), file.parts()))
        .toList();
  }

  /// @param report of writing [#files]
  Manifest manifest(WriteReport report) {
    List<FileEntry> entries = new ArrayList<>();
    int next = 0;
    for (ShardedFiles group : groups) {
      for (ShardedFiles.Shard shard : group.shards()) {
        entries.add(entry(report.files().get(next), shard.tensors()));
        next++;
      }
      entries.add(entry(report.files().get(next), List.of()));
      next++;
    }
    return new Manifest(
        checkpoint.step(),
        sequence,
        new LinkedHashMap<>(checkpoint.state()),
        new LinkedHashMap<>(checkpoint.metrics()),
        new LinkedHashMap<>(checkpoint.metadata()),
        entries);
  }

  /// @param tensors the file's parts after its header, in order
  private static FileEntry entry(WriteReport.FileReport file, List<NewTensor> tensors) {
    WriteReport.Checksums sums = file.checksums().orElseThrow();
    SequencedMap<String, Integer> byName = new LinkedHashMap<>();
    for (int i = 0; i < tensors.size(); i++) {
      byName.put(tensors.get(i).name(), sums.parts().get(i + 1));
    }
    return new FileEntry(file.file().getFileName().toString(), file.size(), sums.file(), byName);
  }
}
