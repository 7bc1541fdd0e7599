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
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.TreeMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Finds the checkpoints in a folder of another store, as [CheckpointListing] does on the disk.
///
/// @param root the local folder; each copy is a [CheckpointFolder] below it, under the copy's name
record RemoteScan(GantrySession session, WritableStore store, Location.Remote location, Path root) {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteScan.class);

  /// Makes a scan of a folder in another store that no local folder was copied to.
  ///
  /// @throws dev.gantry.core.MisuseException if no store serves the location, or the store cannot list files
  static RemoteScan of(GantrySession session, Location.Remote folder) {
    return new RemoteScan(session, session.writable(folder), folder, Path.of("."));
  }

  /// @param name the file's name relative to the folder
  Location at(String name) {
    return Folder.child(location, name);
  }

  /// Returns the sizes of the files of each checkpoint, complete or not.
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

  /// Returns the complete checkpoints in the order of their saves, and logs a warning for each damaged one.
  ///
  /// @throws TransferException if the store does not answer, or refuses access
  List<CheckpointFolder> checkpoints() {
    CheckpointListing listing = listing();
    listing
        .damaged()
        .forEach(damage ->
            LOG.warn("DAMAGED CHECKPOINT, which counts as none: {}", damage.getMessage()));
    return listing.saves();
  }

  /// Lists the checkpoints. One listing does not suffice, as on the disk: it lists until two listings in
  /// succession are equal, so that their checkpoints were all there between the two.
  ///
  /// @throws TransferException if the store does not answer, or refuses access
  CheckpointListing listing() {
    // Uploaded manifests never change, so each is read once.
    SequencedMap<String, CheckpointFolder> known = new TreeMap<>();
    SequencedMap<String, CheckpointListing.Damaged> damaged = new TreeMap<>();
    return CheckpointListing.settled(
        this::complete,
        folders -> {
          known.keySet().retainAll(folders.keySet());
          damaged.keySet().retainAll(folders.keySet());
          folders.forEach((folder, sizes) -> {
            if (!known.containsKey(folder) && !damaged.containsKey(folder)) {
              try {
                known.put(folder, read(folder, sizes));
              } catch (MalformedFileException e) {
                damaged.put(folder, CheckpointListing.Damaged.of(e));
              }
            }
          });
          List<CheckpointFolder> saves = new ArrayList<>(known.values());
          saves.sort(Comparator.comparingLong(CheckpointFolder::sequence));
          List<String> unfinished = new ArrayList<>(folders().keySet());
          unfinished.removeAll(folders.keySet());
          return new CheckpointListing(saves, List.copyOf(damaged.values()), unfinished);
        });
  }

  private Map<String, Map<String, Long>> complete() {
    Map<String, Map<String, Long>> folders = folders();
    folders.values().removeIf(sizes -> !sizes.containsKey(StoreFolder.MANIFEST));
    return folders;
  }

  /// @throws MalformedFileException if the checkpoint is damaged
  private CheckpointFolder read(String folder, Map<String, Long> sizes) {
    Location at = at(folder + "/" + StoreFolder.MANIFEST);
    Manifest manifest = Manifest.read(session, at);
    requireFiles(manifest, folder, sizes);
    return new CheckpointFolder(session, root.resolve(folder), at, manifest.head());
  }

  /// Removes a checkpoint, its manifest first. Files with names that no saver gives stay.
  ///
  /// @param removed runs when the manifest is gone
  void remove(CheckpointFolder checkpoint, Runnable removed) {
    String folder = checkpoint.folder().getFileName().toString();
    store.remove(at(folder + "/" + StoreFolder.MANIFEST));
    removed.run();
    for (WritableStore.Entry entry : store.below(at(folder + "/"))) {
      if (StoreFolder.isOfCheckpoint(folder + "/" + entry.name())) {
        store.remove(at(folder + "/" + entry.name()));
      }
    }
  }

  /// Refuses a checkpoint that lacks a file of its manifest, or has such a file with another
  /// size.
  ///
  /// @param sizes the sizes of the folder's files by name
  private void requireFiles(Manifest manifest, String folder, Map<String, Long> sizes) {
    for (Manifest.FileEntry file : manifest.files()) {
      String name = folder + "/" + file.name();
      Long size = sizes.get(file.name());
      if (size == null || !StoreFolder.isOfCheckpoint(name)) {
        throw new MalformedFileException(
            at(name), 0, "missing-file", "the manifest lists a file that does not exist");
      }
      CheckpointFolder.requireSize(at(name), size, file);
    }
  }
}
