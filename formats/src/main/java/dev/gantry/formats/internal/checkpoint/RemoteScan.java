// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.spi.WritableStore;
import dev.gantry.formats.internal.files.Folder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Finds the checkpoints in a folder of another store, as [StoreScan] does on the disk.
///
/// @param root the local folder; each copy is a [CheckpointFolder] below it, under the copy's name
record RemoteScan(GantrySession session, WritableStore store, Location.Remote location, Path root) {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteScan.class);

  /// @param name the file's name relative to the folder
  Location at(String name) {
    return Folder.child(location, name);
  }

  /// The sizes of the files of each checkpoint, whole or not.
  SequencedMap<String, Map<String, Long>> folders() {
    SequencedMap<String, Map<String, Long>> folders = new TreeMap<>();
    for (WritableStore.Entry entry : store.below(location)) {
      if (StoreFolder.isOfCheckpoint(entry.name())) {
        int slash = entry.name().indexOf('/');
        folders
            .computeIfAbsent(entry.name().substring(0, slash), _ -> new TreeMap<>())
            .put(entry.name().substring(slash + 1), entry.size());
      }
    }
    return folders;
  }

  /// Returns the complete checkpoints in the order of their saves. One listing does not suffice, as on the
  /// disk: it lists until two listings in succession are equal, so that their checkpoints were all there
  /// between the two.
  ///
  /// @throws TransferException if the store does not answer, or refuses access
  List<CheckpointFolder> checkpoints() {
    Map<String, CheckpointFolder> known = new HashMap<>();
    Map<String, Map<String, Long>> before = complete();
    while (true) {
      List<CheckpointFolder> found = new ArrayList<>();
      List<TransferException> gone = new ArrayList<>();
      before.forEach((folder, sizes) -> read(folder, sizes, known, gone));
      before.keySet().stream().filter(known::containsKey).map(known::get).forEach(found::add);
      found.sort(Comparator.comparingLong(CheckpointFolder::sequence));
      Map<String, Map<String, Long>> after = complete();
      if (after.keySet().equals(before.keySet())) {
        if (!gone.isEmpty()) {
          throw gone.getFirst();
        }
        return found;
      }
      before = after;
    }
  }

  private Map<String, Map<String, Long>> complete() {
    Map<String, Map<String, Long>> folders = folders();
    folders.values().removeIf(sizes -> !sizes.containsKey(StoreFolder.MANIFEST));
    return folders;
  }

  /// @param known gets the folder's checkpoint, if it is complete
  /// @param gone gets the error if the manifest was removed meanwhile
  private void read(
      String folder,
      Map<String, Long> sizes,
      Map<String, CheckpointFolder> known,
      List<TransferException> gone) {
    if (known.containsKey(folder)) {
      return;
    }
    try {
      Manifest manifest = Manifest.read(session, at(folder + "/" + StoreFolder.MANIFEST));
      requireFiles(manifest, folder, sizes);
      known.put(folder, new CheckpointFolder(session, root.resolve(folder), manifest.head()));
    } catch (MalformedFileException e) {
      LOG.warn("DAMAGED CHECKPOINT, which counts as none: {}", e.getMessage());
    } catch (TransferException e) {
      if (!e.isNotFound()) {
        throw e;
      }
      gone.add(e);
    }
  }

  /// Refuses a checkpoint that lacks a file of its manifest, or has one of another size.
  ///
  /// @param sizes the sizes of the folder's files by name
  void requireFiles(Manifest manifest, String folder, Map<String, Long> sizes) {
    for (Manifest.FileEntry file : manifest.files()) {
      String name = folder + "/" + file.name();
      Long size = sizes.get(file.name());
      if (size == null || size != file.size() || !StoreFolder.isOfCheckpoint(name)) {
        throw new MalformedFileException(
            at(name),
            0,
            size == null ? "missing-file" : "wrong-size",
            (size == null ? "not there" : size + " bytes")
                + ", where the manifest has "
                + file.size());
      }
    }
  }

  /// Reads a checkpoint's manifest and compares the sizes of its files, as they are now.
  ///
  /// @throws MalformedFileException if a file is missing or of another size, or the manifest is of another
  ///     save by now
  Manifest require(CheckpointFolder checkpoint) {
    String folder = name(checkpoint);
    Location there = at(folder + "/" + StoreFolder.MANIFEST);
    Manifest manifest = Manifest.read(session, there);
    if (!manifest.head().equals(checkpoint.head())) {
      throw new MalformedFileException(
          there, 0, "changed-manifest", "it is of another save than when the folder was listed");
    }
    Map<String, Long> sizes = new HashMap<>();
    store
        .below(at(folder + "/"))
        .forEach(entry -> {
          long _ = sizes.merge(entry.name(), entry.size(), (_, now) -> now);
        });
    requireFiles(manifest, folder, sizes);
    return manifest;
  }

  /// Opens a group's tensors.
  ///
  /// @throws MalformedFileException if a file is missing, or a header or the index is damaged
  SavedGroup open(CheckpointFolder checkpoint, String group) {
    CheckpointFiles files =
        new CheckpointFiles(
            session, at(name(checkpoint) + "/" + StoreFolder.MANIFEST), require(checkpoint));
    return SavedGroup.of(files, group);
  }

  /// The name of a checkpoint in the store.
  static String name(CheckpointFolder checkpoint) {
    return checkpoint.folder().getFileName().toString();
  }
}
