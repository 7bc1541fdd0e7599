// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.LongStream;

/// What a folder of checkpoints holds. Immutable.
///
/// @param checkpoints in the order in which they were saved, also those that were replaced by a
///     later save of their step
/// @param damaged those whose manifest cannot be used
record StoreScan(List<CheckpointFolder> checkpoints, List<Damaged> damaged) {
  /// @param reason what is wrong with the manifest
  /// @param step by the folder's name; empty where that has no number that fits
  /// @param sequence where the manifest can still tell
  record Damaged(MalformedFileException reason, OptionalLong step, OptionalLong sequence) {
    /// False where it may have been saved later.
    boolean isOlderThan(CheckpointFolder other) {
      if (sequence.isPresent()) {
        return sequence.getAsLong() < other.sequence();
      }
      return step.isPresent() && step.getAsLong() < other.step();
    }
  }

  StoreScan {
    checkpoints = List.copyOf(checkpoints);
    damaged = List.copyOf(damaged);
  }

  /// What is there at one moment, though a saver may work meanwhile.
  ///
  /// One look does not tell: while it goes on, a checkpoint may be finished that it did not see yet
  /// and the one before it removed, and it finds neither. What two looks in succession find was
  /// there between them.
  ///
  /// @throws TransferException if a manifest cannot be read: it may be whole all the same
  static StoreScan of(StoreFolder folder) {
    Map<Path, Optional<StoreFolder.ManifestStamp>> before = folder.look();
    while (true) {
      StoreScan scan = read(folder.session(), before.keySet());
      Map<Path, Optional<StoreFolder.ManifestStamp>> after = folder.look();
      if (after.equals(before)) {
        return scan;
      }
      before = after;
    }
  }

  private static StoreScan read(GantrySession session, Set<Path> folders) {
    List<CheckpointFolder> found = new ArrayList<>();
    List<Damaged> damaged = new ArrayList<>();
    for (Path checkpoint : folders) {
      Path manifest = StoreFolder.manifest(checkpoint);
      try {
        found.add(new CheckpointFolder(session, checkpoint, Manifest.readHead(session, manifest)));
      } catch (MalformedFileException e) {
        damaged.add(damaged(session, checkpoint, e));
      } catch (TransferException e) {
        if (e.isErrno(Set.of("EISDIR"))) {
          MalformedFileException reason =
              new MalformedFileException(manifest, 0, "not-a-regular-file", "it is a folder");
          damaged.add(new Damaged(reason, StoreFolder.step(checkpoint), OptionalLong.empty()));
        } else if (!e.isNotFound()) {
          throw e;
        }
      }
    }
    found.sort(Comparator.comparingLong(CheckpointFolder::sequence));
    return new StoreScan(found, damaged);
  }

  private static Damaged damaged(
      GantrySession session, Path checkpoint, MalformedFileException reason) {
    OptionalLong step = StoreFolder.step(checkpoint);
    OptionalLong sequence =
        step.isEmpty()
            ? OptionalLong.empty()
            : Manifest.sequence(session, StoreFolder.manifest(checkpoint), step.getAsLong());
    return new Damaged(reason, step, sequence);
  }

  /// The highest sequence of all saves, as far as they can be told; 0 where there was none.
  long lastSequence() {
    return LongStream.concat(
            checkpoints.stream().mapToLong(CheckpointFolder::sequence),
            damaged.stream().flatMapToLong(one -> one.sequence().stream()))
        .max()
        .orElse(0);
  }

  /// Those of the damaged that may have been saved after all that are not.
  List<MalformedFileException> doubtful() {
    return damaged.stream()
        .filter(one -> checkpoints.isEmpty() || !one.isOlderThan(checkpoints.getLast()))
        .map(Damaged::reason)
        .toList();
  }
}
