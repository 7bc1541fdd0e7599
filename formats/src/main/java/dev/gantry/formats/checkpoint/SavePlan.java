package dev.gantry.formats.checkpoint;

import dev.gantry.core.commit.NewFile;
import dev.gantry.core.commit.WriteReport;
import dev.gantry.formats.checkpoint.Manifest.FileEntry;
import dev.gantry.formats.safetensors.NewCheckpoint;
import dev.gantry.formats.safetensors.NewTensor;
import dev.gantry.formats.safetensors.Sharding;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// Which files a checkpoint becomes. Immutable.
///
/// @param folder that will hold them; not there yet
/// @param sequence the number of the save
/// @param groups the files of each group
record SavePlan(
    Path folder, long sequence, UnsavedCheckpoint checkpoint, List<NewCheckpoint> groups) {
  SavePlan {
    groups = List.copyOf(groups);
  }

  /// @throws dev.gantry.core.MisuseException if a tensor cannot be written under its name
  static SavePlan of(UnsavedCheckpoint checkpoint, long sequence, Path folder, long shardBytes) {
    Sharding sharding = Sharding.defaults().withShardBytes(shardBytes).withIndexOfOne(true);
    List<NewCheckpoint> groups = new ArrayList<>();
    checkpoint
        .groups()
        .forEach((group, tensors) ->
            groups.add(
                NewCheckpoint.folder(
                    folder, tensors, checkpoint.metadata(), sharding.withStem(group))));
    return new SavePlan(folder, sequence, checkpoint, groups);
  }

  /// All files but the manifest.
  List<NewFile> files() {
    return groups.stream().flatMap(group -> group.files().stream()).toList();
  }

  /// @param report of writing [#files]
  Manifest manifest(WriteReport report) {
    Map<Path, List<NewTensor>> tensors = new HashMap<>();
    for (NewCheckpoint group : groups) {
      group.shards().forEach(shard -> tensors.put(shard.file().file(), shard.tensors()));
    }
    List<FileEntry> entries =
        report.files().stream()
            .map(file -> entry(file, tensors.getOrDefault(file.file(), List.of())))
            .toList();
    return new Manifest(
        checkpoint.step(),
        sequence,
        new LinkedHashMap<>(checkpoint.state()),
        new LinkedHashMap<>(checkpoint.metrics()),
        new LinkedHashMap<>(checkpoint.metadata()),
        entries);
  }

  /// @param tensors the file's parts after its header, in order; none of an index
  private static FileEntry entry(WriteReport.FileReport file, List<NewTensor> tensors) {
    WriteReport.Checksums sums = file.checksums().orElseThrow();
    SequencedMap<String, Integer> byName = new LinkedHashMap<>();
    for (int i = 0; i < tensors.size(); i++) {
      byName.put(tensors.get(i).name(), sums.parts().get(i + 1));
    }
    return new FileEntry(file.file().getFileName().toString(), file.size(), sums.file(), byName);
  }
}
