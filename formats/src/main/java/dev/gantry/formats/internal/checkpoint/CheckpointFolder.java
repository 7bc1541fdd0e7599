// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.FileErrors;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// A complete checkpoint in a local folder. Thread-safe.
public final class CheckpointFolder implements StoredCheckpoint {
  private final GantrySession session;
  private final Path folder;
  private final Manifest.Head head;

  /// The manifest; null until it is asked for.
  private volatile @Nullable Manifest manifest;

  CheckpointFolder(GantrySession session, Path folder, Manifest.Head head) {
    this.session = session;
    this.folder = folder;
    this.head = head;
  }

  CheckpointFolder(GantrySession session, Path folder, Manifest manifest) {
    this(session, folder, manifest.head());
    this.manifest = manifest;
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
      Path file = StoreFolder.manifest(folder);
      known = Manifest.read(session, file);
      if (!known.head().equals(head)) {
        throw new MalformedFileException(
            file, 0, "changed-manifest", "it is of another save than when the folder was listed");
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
    return files().open(group);
  }

  /// Opens a group's tensors as [#open] does, together with the manifest's checksums of them.
  SavedGroup group(String group) {
    checkSizes();
    return SavedGroup.of(files(), group);
  }

  private CheckpointFiles files() {
    return new CheckpointFiles(session, Location.of(StoreFolder.manifest(folder)), manifest());
  }

  /// Whether the checkpoint has a group of this name.
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

  /// Compares a tensor's CRC32C with that of the saved bytes.
  ///
  /// @param tensor a tensor that [#open] gave
  /// @param crc32c the CRC32C of the tensor's bytes
  /// @throws MalformedFileException of kind `checksum-mismatch`, or `checksum-missing` where the
  ///     manifest has none
  public void check(StoredTensor tensor, int crc32c) {
    files().check(tensor, crc32c);
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
