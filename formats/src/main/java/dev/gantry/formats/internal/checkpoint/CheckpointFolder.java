// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.Crc32c;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.safetensors.SafetensorsOpener;
import dev.gantry.formats.spi.FileBytes;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A complete checkpoint in a local folder or another store. Thread-safe.
public final class CheckpointFolder implements StoredCheckpoint {
  private static final String INDEX_SUFFIX = ".safetensors.index.json";

  private final GantrySession session;
  private final Path folder;

  /// The manifest's file.
  private final Location at;

  private final Manifest head;

  /// The manifest; null before [#manifest] is called.
  private volatile @Nullable Manifest manifest;

  CheckpointFolder(GantrySession session, Path folder, Manifest head) {
    this(session, folder, Location.of(StoreFolder.manifest(folder)), head);
  }

  /// @param folder a local folder, or for a checkpoint of another store any path that ends in its folder's name
  /// @param at the manifest's file
  CheckpointFolder(GantrySession session, Path folder, Location at, Manifest head) {
    this.session = session;
    this.folder = folder;
    this.at = at;
    this.head = head;
  }

  /// Finds the checkpoint whose folder holds a data file; empty if the folder does not have a
  /// checkpoint's name and manifest.
  static Optional<CheckpointFolder> around(GantrySession session, Location dataFile) {
    return hasName(dataFile)
        ? of(session, dataFile.sibling(StoreFolder.MANIFEST))
        : Optional.empty();
  }

  /// Whether the folder that holds a file has a checkpoint's name.
  static boolean hasName(Location file) {
    return StoreFolder.isCheckpoint(folderName(file).toString());
  }

  /// Opens the checkpoint of a manifest; empty if there is no such file.
  static Optional<CheckpointFolder> of(GantrySession session, Location at) {
    try {
      Manifest manifest = Manifest.read(session, at);
      CheckpointFolder found = new CheckpointFolder(session, folderName(at), at, manifest.head());
      found.manifest = manifest;
      return Optional.of(found);
    } catch (TransferException e) {
      if (e.isNotFound()) {
        return Optional.empty();
      }
      throw e;
    }
  }

  /// The name of the folder that holds a file; empty if there is none.
  public static Path folderName(Location dataFile) {
    Path path =
        switch (dataFile) {
          case Location.Local(Path file, _) -> file.toAbsolutePath();
          case Location.Remote remote -> Path.of("/" + remote.uri().getPath());
        };
    Path folder = path.getParent();
    return folder == null || folder.getFileName() == null ? Path.of("") : folder.getFileName();
  }

  /// A file of this checkpoint.
  public Location file(String name) {
    return at.sibling(name);
  }

  /// When the manifest was written, which is the end of the save; empty if the store does not
  /// tell.
  public Optional<Instant> saved() {
    try (SourceFile manifestFile = session.openFile(at)) {
      return manifestFile.modified();
    }
  }

  /// Returns this checkpoint without the cached manifest, so that the manifest is read again.
  public CheckpointFolder afresh() {
    return new CheckpointFolder(session, folder, at, head);
  }

  Manifest head() {
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

  @Override
  public boolean isFinite() {
    return head.finite();
  }

  /// Returns the whole manifest, which is read at the first call and kept.
  ///
  /// @throws MalformedFileException if the manifest is damaged, with a kind for each fault; of kind
  ///     `changed-manifest` if another save has replaced it
  /// @throws TransferException if the file cannot be read, or the checkpoint was removed meanwhile
  public Manifest manifest() {
    Manifest known = manifest;
    if (known == null) {
      known = Manifest.read(session, at);
      if (!known.head().equals(head)) {
        throw new MalformedFileException(
            at, 0, "changed-manifest", "another save replaced it after the folder was listed");
      }
      manifest = known;
    }
    return known;
  }

  /// Opens a group's tensors, after it has compared the sizes of all files and the checksums of the group's
  /// headers and index. It reads no tensor's bytes: [#check] compares their checksums.
  ///
  /// @throws MalformedFileException if a file is gone or of another size than when it was saved, or
  ///     a header or index is damaged
  public WeightsCatalogue open(String group) {
    checkSizes();
    Location index = at.sibling(CheckpointFolder.indexName(group));
    WeightsCatalogue tensors = SafetensorsOpener.open(session, index);
    try (FileBytes bytes = FileBytes.open(session, index)) {
      requireSame(index, bytes.crc32c(0, bytes.length()), entry(index).crc32c());
    }
    checkHeaders(tensors);
    return tensors;
  }

  /// Opens a group's tensors as [#open] does, together with the manifest's checksums of them.
  public SavedGroup group(String group) {
    WeightsCatalogue tensors = open(group);
    return new SavedGroup(tensors, () -> sums(tensors));
  }

  /// Compares the checksums of the headers of these tensors' data files.
  void checkHeaders(WeightsCatalogue tensors) {
    tensors.tensors().values().stream()
        .collect(Collectors.groupingBy(tensor -> tensor.extent().file()))
        .forEach(this::checkHeader);
  }

  /// Checks a header without reading the tensors: the CRC32C of the header, combined with the
  /// checksums of the tensors from the manifest, must equal the CRC32C of the file.
  ///
  /// @param tensors the data file's tensors by offset; the header ends where the first one begins
  private void checkHeader(Location dataFile, List<StoredTensor> tensors) {
    Manifest.FileEntry entry = entry(dataFile);
    int sum;
    try (FileBytes bytes = FileBytes.open(session, dataFile)) {
      sum = bytes.crc32c(0, tensors.getFirst().extent().offset());
    }
    for (StoredTensor tensor : tensors) {
      sum = Crc32c.combine(sum, savedSum(entry, tensor), tensor.extent().length());
    }
    requireSame(dataFile, sum, entry.crc32c());
  }

  /// The manifest's checksums of tensors, which loads compare.
  List<KnownChecksums.Known> sums(WeightsCatalogue tensors) {
    return tensors.tensors().values().stream()
        .map(tensor ->
            new KnownChecksums.Known(
                tensor.extent(),
                "tensor '" + tensor.name() + "'",
                savedSum(entry(tensor.extent().file()), tensor)))
        .toList();
  }

  /// Whether the checkpoint has a group of this name.
  public boolean has(String group) {
    return groups().contains(group);
  }

  /// The names of its groups, such as `model`.
  public List<String> groups() {
    return manifest().files().stream()
        .map(Manifest.FileEntry::name)
        .filter(name -> name.endsWith(INDEX_SUFFIX))
        .map(name -> name.substring(0, name.length() - INDEX_SUFFIX.length()))
        .toList();
  }

  static String indexName(String group) {
    return group + INDEX_SUFFIX;
  }

  /// @throws MalformedFileException of kind `missing-file` or `wrong-size`
  public void checkSizes() {
    manifest().files().forEach(this::checkSize);
  }

  void checkSize(Manifest.FileEntry entry) {
    Location file = file(entry.name());
    try (SourceFile opened = session.openFile(file)) {
      requireSize(file, opened.size(), entry);
    } catch (TransferException e) {
      if (!e.isNotFound()) {
        throw e;
      }
      throw new MalformedFileException(
          file, 0, "missing-file", "the manifest lists a file that does not exist");
    }
  }

  /// Whether the manifest still exists.
  boolean isThere() {
    try {
      session.openFile(at).close();
      return true;
    } catch (TransferException e) {
      if (!e.isNotFound()) {
        throw e;
      }
      return false;
    }
  }

  /// Whether the manifest is intact and all files exist with their sizes.
  boolean isWhole() {
    try {
      afresh().checkSizes();
      return true;
    } catch (MalformedFileException _) {
      return false;
    }
  }

  /// @throws MalformedFileException of kind `wrong-size` if a file has another size than when it was saved
  static void requireSize(Location file, long size, Manifest.FileEntry saved) {
    if (size != saved.size()) {
      throw new MalformedFileException(
          file,
          Math.min(size, saved.size()),
          "wrong-size",
          size + " bytes, where the manifest has " + saved.size());
    }
  }

  /// Compares a tensor's CRC32C with that of the saved bytes.
  ///
  /// @param tensor a tensor that [#open] gave
  /// @param crc32c the CRC32C of the tensor's bytes
  /// @throws MalformedFileException of kind `checksum-mismatch`, or `checksum-missing` where the
  ///     manifest has none
  public void check(StoredTensor tensor, int crc32c) {
    int saved = savedSum(entry(tensor.extent().file()), tensor);
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

  static void requireSame(Location file, int sum, int saved) {
    if (sum != saved) {
      throw new MalformedFileException(
          file,
          0,
          "checksum-mismatch",
          String.format(
              Locale.ROOT,
              "the list of tensors has CRC32C %08x, and had %08x when it was saved",
              sum,
              saved));
    }
  }

  private Manifest.FileEntry entry(Location file) {
    return manifest().files().stream()
        .filter(entry -> file.fileName().equals(entry.name()))
        .findFirst()
        .orElseThrow(() ->
            new MalformedFileException(
                at, 0, "unlisted-file", "'" + file.fileName() + "' is not in the manifest"));
  }

  private int savedSum(Manifest.FileEntry entry, StoredTensor tensor) {
    Integer saved = entry.tensors().get(tensor.name());
    if (saved == null) {
      throw new MalformedFileException(
          at,
          0,
          "checksum-missing",
          "tensor '" + tensor.name() + "' of " + entry.name() + " has none");
    }
    return saved;
  }

  /// Whether this checkpoint's folder has the same name as another; both lie in one parent folder.
  boolean isAt(Path other) {
    return folder.getFileName().equals(other.getFileName());
  }

  /// Two checkpoints are equal if they are of the same save.
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
