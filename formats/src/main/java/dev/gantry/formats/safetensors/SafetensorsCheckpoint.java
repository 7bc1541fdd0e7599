package dev.gantry.formats.safetensors;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Which tensors a checkpoint holds, over all of its shards, and where their bytes lie.
///
/// Only headers are read, at [#open]; nothing stays open. Immutable and safe for use by several
/// threads.
public final class SafetensorsCheckpoint {
  private final List<Path> files;
  private final SequencedMap<String, TensorInfo> tensors;
  private final SequencedMap<String, String> metadata;
  private final long totalBytes;

  SafetensorsCheckpoint(
      List<Path> files,
      SequencedMap<String, TensorInfo> tensors,
      SequencedMap<String, String> metadata) {
    this.files = List.copyOf(files);
    this.tensors = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(tensors));
    this.metadata = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(metadata));
    this.totalBytes =
        tensors.values().stream()
            .mapToLong(tensor -> tensor.extent().length())
            .reduce(0, Math::addExact);
  }

  /// Opens a safetensors file, an index (a name that ends in `.json`), or a folder.
  ///
  /// In a folder the index counts: `model.safetensors.index.json`, else the only
  /// `*.safetensors.index.json`. A folder without one is all of its `*.safetensors` together. With
  /// an index, only the tensors that it names are in the checkpoint.
  ///
  /// @throws MalformedFileException if a header or the index breaks a rule, or if they do not
  ///     agree: `missing-shard`, `tensor-not-in-shard`, `tensor-in-two-shards`; for a folder also
  ///     `no-safetensors` and `several-indexes`
  /// @throws TransferException if a file or folder cannot be opened or read
  public static SafetensorsCheckpoint open(Path path) {
    return CheckpointOpener.open(path);
  }

  /// By name; ordered by the names of the shards, in each by offset.
  public SequencedMap<String, TensorInfo> tensors() {
    return tensors;
  }

  /// The shards' notes (`__metadata__`) together; where they differ, the first shard's count.
  public SequencedMap<String, String> metadata() {
    return metadata;
  }

  /// The shards, by name.
  public List<Path> files() {
    return files;
  }

  /// The size of all tensors together, in bytes.
  public long totalBytes() {
    return totalBytes;
  }
}
