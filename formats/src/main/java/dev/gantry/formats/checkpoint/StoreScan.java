package dev.gantry.formats.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;

/// What a folder of checkpoints holds. Immutable.
///
/// @param checkpoints in the order in which they were saved, also those that were replaced by a
///     later save of their step
/// @param damaged those whose manifest cannot be used, and why
/// @param unfinished folders without a manifest: just being saved or removed, or left by a crash
record StoreScan(
    List<StoredCheckpoint> checkpoints,
    List<MalformedFileException> damaged,
    List<Path> unfinished) {
  StoreScan {
    checkpoints = List.copyOf(checkpoints);
    damaged = List.copyOf(damaged);
    unfinished = List.copyOf(unfinished);
  }

  /// What is there at one moment, though a saver may work meanwhile.
  ///
  /// One look does not tell: while it goes on, a checkpoint may be finished that it did not see yet
  /// and the one before it removed, and it finds neither. What two looks in succession find was
  /// there between them.
  static StoreScan of(StoreFolder folder) {
    StoreScan scan = once(folder);
    boolean certain = false;
    while (!certain) {
      StoreScan again = once(folder);
      certain =
          again.checkpoints.equals(scan.checkpoints) && again.unfinished.equals(scan.unfinished);
      scan = again;
    }
    return scan;
  }

  private static StoreScan once(StoreFolder folder) {
    List<StoredCheckpoint> found = new ArrayList<>();
    List<MalformedFileException> damaged = new ArrayList<>();
    List<Path> unfinished = new ArrayList<>();
    for (Path checkpoint : folder.checkpoints()) {
      try {
        Manifest manifest = Manifest.read(StoreFolder.manifest(checkpoint));
        found.add(new StoredCheckpoint(checkpoint, manifest));
      } catch (MalformedFileException e) {
        damaged.add(e);
      } catch (TransferException e) {
        if (e.isErrno(Set.of("ENOENT"))) {
          unfinished.add(checkpoint);
        } else {
          // One that cannot be read is no reason to be without the others.
          Path manifest = StoreFolder.manifest(checkpoint);
          damaged.add(
              new MalformedFileException(manifest, 0, "unreadable-manifest", e.getMessage()));
        }
      }
    }
    found.sort(Comparator.comparingLong(one -> one.manifest().sequence()));
    return new StoreScan(found, damaged, unfinished);
  }

  /// 0 where there is no checkpoint.
  long lastSequence() {
    return checkpoints.isEmpty() ? 0 : checkpoints.getLast().manifest().sequence();
  }
}
