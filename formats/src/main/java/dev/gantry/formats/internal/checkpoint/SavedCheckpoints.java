// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.files.Folder;
import dev.gantry.formats.internal.files.FolderLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/// The checkpoints at a location of any store, for tools that inspect and prune them. The
/// location is a folder of checkpoints, or the folder of one checkpoint.
public record SavedCheckpoints(GantrySession session, Location location) {
  /// Returns the checkpoint whose folder this location is, whatever the folder's name; empty if
  /// the folder has no manifest.
  ///
  /// @throws MalformedFileException if the folder has a checkpoint's name, and its manifest is damaged
  public Optional<CheckpointFolder> single() {
    Location manifest =
        switch (location) {
          case Location.Local(Path path, _) ->
              Location.of(StoreFolder.manifest(path.toAbsolutePath().normalize()));
          case Location.Remote remote -> Folder.child(remote, StoreFolder.MANIFEST);
        };
    try {
      return CheckpointFolder.of(session, manifest);
    } catch (MalformedFileException damaged) {
      if (CheckpointFolder.hasName(manifest)) {
        throw damaged;
      }
      // Another program's file may have this name.
      return Optional.empty();
    }
  }

  /// Returns the checkpoint whose folder this location is; empty for a file. In another store, it
  /// is also empty for a folder without a checkpoint's name.
  ///
  /// @throws MalformedFileException as [#single]
  public Optional<CheckpointFolder> named() {
    boolean folder =
        switch (location) {
          case Location.Local(Path path, _) -> Files.isDirectory(path);
          case Location.Remote remote ->
              CheckpointFolder.hasName(Folder.child(remote, StoreFolder.MANIFEST));
        };
    return folder ? single() : Optional.empty();
  }

  /// Lists the checkpoints of the folder, or the one checkpoint whose folder this location is.
  ///
  /// @throws MisuseException if this is a local file, or a store that cannot list files
  /// @throws TransferException if there is no such folder, or a manifest cannot be read
  public CheckpointListing list() {
    if (location instanceof Location.Local(Path path, _) && !Files.isDirectory(path)) {
      SourceFile.Identity _ = SourceFile.Identity.look(path);
      return CheckpointStore.list(session, path);
    }
    try {
      Optional<CheckpointFolder> one = single();
      if (one.isPresent()) {
        return new CheckpointListing(List.of(one.get()), List.of(), List.of());
      }
    } catch (MalformedFileException damaged) {
      return new CheckpointListing(
          List.of(), List.of(CheckpointListing.Damaged.of(damaged)), List.of());
    }
    return switch (location) {
      case Location.Local(Path path, _) -> CheckpointStore.list(session, path);
      case Location.Remote remote -> RemoteScan.of(session, remote).listing();
    };
  }

  /// Returns the checkpoints that a retention does not keep. A checkpoint that lacks a file, or
  /// has a file of another size, is ignored: the retention does not count it, and it is not
  /// removed.
  ///
  /// @param saves the checkpoints of one folder
  public static List<CheckpointFolder> surplus(List<CheckpointFolder> saves, Retention retention) {
    return retention.surplus(saves.stream().filter(CheckpointFolder::isWhole).toList());
  }

  /// The result of [#prune].
  ///
  /// @param removed the checkpoints that were removed
  /// @param failures a failure for each checkpoint that could not be removed: it is there whole, or counts as
  ///     unfinished
  public record Pruned(List<CheckpointFolder> removed, List<TransferException> failures) {
    private static Pruned of(List<CheckpointFolder> surplus, Consumer<CheckpointFolder> removal) {
      List<CheckpointFolder> removed = new ArrayList<>();
      List<TransferException> failures =
          StoreFolder.removeEach(
              surplus,
              one -> {
                removal.accept(one);
                removed.add(one);
              });
      return new Pruned(removed, failures);
    }
  }

  /// Removes the checkpoints of a folder that a retention does not keep. In a local folder, this
  /// also removes the leftovers of unfinished saves, as the next saver would; files that no saver
  /// has written stay.
  ///
  /// In another store, a saver may be uploading meanwhile: checkpoints without a manifest stay.
  ///
  /// @throws MisuseException if a saver has the local folder open
  /// @throws TransferException if the folder cannot be read, or a leftover cannot be removed
  public Pruned prune(Retention retention) {
    return switch (location) {
      case Location.Local(Path path, _) -> {
        StoreFolder folder = new StoreFolder(session, path);
        try (FolderLock _ = FolderLock.take(path, "saver")) {
          folder.removeLeftovers();
          List<CheckpointFolder> surplus = surplus(CheckpointListing.of(folder).saves(), retention);
          yield Pruned.of(surplus, one -> folder.remove(one.folder()));
        }
      }
      case Location.Remote remote -> {
        RemoteScan scan = RemoteScan.of(session, remote);
        List<CheckpointFolder> surplus = surplus(scan.listing().saves(), retention);
        yield Pruned.of(surplus, one -> scan.remove(one, () -> {}));
      }
    };
  }
}
