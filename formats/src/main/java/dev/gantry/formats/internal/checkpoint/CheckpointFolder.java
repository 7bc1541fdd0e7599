// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.core.internal.sums.Crc32c;
import dev.gantry.core.internal.sums.KnownSums;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A checkpoint that was saved whole. Thread-safe.
public final class CheckpointFolder implements StoredCheckpoint {
  private final Path folder;
  private final Manifest.Head head;

  /// Null until it is asked for.
  private volatile @Nullable Manifest manifest;

  CheckpointFolder(Path folder, Manifest.Head head) {
    this.folder = folder;
    this.head = head;
  }

  CheckpointFolder(Path folder, Manifest manifest) {
    this(folder, manifest.head());
    this.manifest = manifest;
  }

  /// The checkpoint whose folder a data file lies in, by its name and its manifest.
  static Optional<CheckpointFolder> around(Path dataFile) {
    Path folder = Objects.requireNonNull(dataFile.toAbsolutePath().getParent());
    Path manifest = StoreFolder.manifest(folder);
    return StoreFolder.step(folder).isPresent() && Files.exists(manifest)
        ? Optional.of(new CheckpointFolder(folder, Manifest.readHead(manifest)))
        : Optional.empty();
  }

  Manifest.Head head() {
    return head;
  }

  @Override
  public Path folder() {
    return folder;
  }

  @Override
  public long step() {
    return head.step();
  }

  @Override
  public long sequence() {
    return head.sequence();
  }

  @Override
  public SequencedMap<String, Double> metrics() {
    return head.metrics();
  }

  /// All that the manifest says: read when it is first asked for, and kept.
  ///
  /// @throws MalformedFileException if it is damaged, each fault with its own kind; of kind
  ///     `changed-manifest` if it is of another save now
  /// @throws TransferException if the file cannot be read, or the checkpoint was removed meanwhile
  public Manifest manifest() {
    Manifest known = manifest;
    if (known == null) {
      Path file = StoreFolder.manifest(folder);
      known = Manifest.read(file);
      if (!known.head().equals(head)) {
        throw new MalformedFileException(
            file, 0, "changed-manifest", "it is of another save than when the folder was listed");
      }
      manifest = known;
    }
    return known;
  }

  /// Opens a group's tensors, after the sizes of all files and the checksums of the group's headers
  /// and index were compared. Those of the tensors are for [#check].
  ///
  /// @throws MalformedFileException if a file is gone or of another size than when it was saved, or
  ///     a header or index is damaged
  public WeightsCatalogue open(String group) {
    checkSizes();
    Path index = folder.resolve(indexName(group));
    WeightsCatalogue checkpoint = SafetensorsOpener.open(index);
    try (FileBytes bytes = FileBytes.open(index)) {
      requireSame(index, bytes.crc32c(0, bytes.length()), entry(index).crc32c());
    }
    checkHeaders(checkpoint);
    return checkpoint;
  }

  /// Compares the checksums of the headers of these tensors' data files.
  void checkHeaders(WeightsCatalogue tensors) {
    tensors.tensors().values().stream()
        .collect(Collectors.groupingBy(tensor -> tensor.extent().file().path()))
        .forEach(this::checkHeader);
  }

  /// With the sums of the tensors as the manifest has them, the header's must make that of the
  /// file.
  ///
  /// @param tensors of the data file, by offset: the header ends where the first begins
  private void checkHeader(Path dataFile, List<StoredTensor> tensors) {
    Manifest.FileEntry entry = entry(dataFile);
    int sum;
    try (FileBytes bytes = FileBytes.open(dataFile)) {
      sum = bytes.crc32c(0, tensors.getFirst().extent().offset());
    }
    for (StoredTensor tensor : tensors) {
      sum = Crc32c.combine(sum, savedSum(entry, tensor), tensor.extent().length());
    }
    requireSame(dataFile, sum, entry.crc32c());
  }

  /// What the manifest says of a group's tensors, for loads to compare.
  ///
  /// @param tensors of this folder's data files
  public List<KnownSums.Known> sums(WeightsCatalogue tensors) {
    return tensors.tensors().values().stream()
        .map(tensor ->
            new KnownSums.Known(
                tensor.extent(),
                "tensor '" + tensor.name() + "'",
                savedSum(entry(tensor.extent().file().path()), tensor)))
        .toList();
  }

  private static void requireSame(Path file, int sum, int saved) {
    if (sum != saved) {
      throw new MalformedFileException(
          file,
          0,
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "what tells of the tensors has CRC32C %08x, and had %08x when it was saved",
              sum,
              saved));
    }
  }

  private Manifest.FileEntry entry(Path file) {
    return manifest().files().stream()
        .filter(entry -> file.endsWith(entry.name()))
        .findFirst()
        .orElseThrow(() ->
            new MalformedFileException(
                StoreFolder.manifest(folder),
                0,
                "unlisted-file",
                "'" + file.getFileName() + "' is not in the manifest"));
  }

  private int savedSum(Manifest.FileEntry entry, StoredTensor tensor) {
    Integer saved = entry.tensors().get(tensor.name());
    if (saved == null) {
      throw new MalformedFileException(
          StoreFolder.manifest(folder),
          0,
          "checksum-missing",
          "tensor '" + tensor.name() + "' of " + entry.name() + " has none");
    }
    return saved;
  }

  /// Whether there is such a group.
  public boolean has(String group) {
    return manifest().files().stream().anyMatch(file -> file.name().equals(indexName(group)));
  }

  static String indexName(String group) {
    return group + ".safetensors.index.json";
  }

  /// @throws MalformedFileException of kind `missing-file` or `wrong-size`
  public void checkSizes() {
    for (Manifest.FileEntry entry : manifest().files()) {
      Path file = folder.resolve(entry.name());
      long size;
      try {
        size = Files.size(file);
      } catch (NoSuchFileException _) {
        throw new MalformedFileException(file, 0, "missing-file", "the manifest lists it");
      } catch (IOException e) {
        throw FileErrors.of("stat", file.toString(), e);
      }
      if (size != entry.size()) {
        throw new MalformedFileException(
            file,
            Math.min(size, entry.size()),
            "wrong-size",
            size + " bytes, where the manifest has " + entry.size());
      }
    }
  }

  /// Compares what a tensor's bytes sum to with what they did when they were saved.
  ///
  /// @param tensor as [#open] gave it
  /// @param crc32c of its bytes
  /// @throws MalformedFileException of kind `checksum-mismatch`, or `checksum-missing` where the
  ///     manifest has none
  public void check(StoredTensor tensor, int crc32c) {
    int saved = savedSum(entry(tensor.extent().file().path()), tensor);
    if (saved != crc32c) {
      throw new MalformedFileException(
          tensor.extent().file(),
          tensor.extent().offset(),
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "tensor '%s' has CRC32C %08x, and had %08x when it was saved",
              tensor.name(),
              crc32c,
              saved));
    }
  }

  /// Whether it is the same save.
  @Override
  public boolean equals(@Nullable Object other) {
    return other instanceof CheckpointFolder that
        && folder.equals(that.folder)
        && head.equals(that.head);
  }

  @Override
  public int hashCode() {
    return Objects.hash(folder, head);
  }

  @Override
  public String toString() {
    return folder.toString();
  }
}
