package dev.gantry.formats.spi;

import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;

/// Which tensors some weights hold, over all of their data files, and where their bytes lie.
///
/// A format reads only headers to make one, and keeps nothing open. Immutable and safe for use by
/// several threads.
public final class WeightsCatalogue {
  private final List<Path> files;
  private final SequencedMap<String, StoredTensor> tensors;
  private final SequencedMap<String, String> metadata;
  private final long totalBytes;

  public WeightsCatalogue(
      List<Path> files,
      SequencedMap<String, StoredTensor> tensors,
      SequencedMap<String, String> metadata) {
    this.files = List.copyOf(files);
    this.tensors = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(tensors));
    this.metadata = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(metadata));
    this.totalBytes =
        tensors.values().stream()
            .mapToLong(tensor -> tensor.extent().length())
            .reduce(0, Math::addExact);
  }

  /// By name; ordered by the names of the shards, in each by offset.
  public SequencedMap<String, StoredTensor> tensors() {
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
