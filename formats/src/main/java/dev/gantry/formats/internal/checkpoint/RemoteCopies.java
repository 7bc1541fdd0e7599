// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiPredicate;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Fetches copies of a folder's checkpoints from another store. The [CheckpointStore] calls it under its
/// lock, and adds the fetched checkpoint to its list.
///
/// @param here the checkpoints of the local folder, a list that the [CheckpointStore] changes
record RemoteCopies(RemoteFolder remote, List<CheckpointFolder> here) {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteCopies.class);

  /// The copy that was saved last.
  Optional<CheckpointFolder> last() {
    return remote.checkpoints().reversed().stream().findFirst();
  }

  Optional<CheckpointFolder> copyOf(Path checkpoint) {
    return remote.copyOf(checkpoint, here.stream().filter(one -> !one.isAt(checkpoint)).toList());
  }

  /// Whether any copy was saved before a checkpoint of the folder.
  boolean hasEarlier(Path checkpoint) {
    return here.stream()
        .filter(one -> one.isAt(checkpoint))
        .anyMatch(one ->
            remote.checkpoints().stream().anyMatch(there -> there.sequence() < one.sequence()));
  }

  /// @return the fetched copy; empty where the folder has the same save in another place
  Optional<CheckpointFolder> fetchCopyOf(Path damaged) {
    CheckpointFolder copy = copyOf(damaged).orElseThrow();
    boolean isHere =
        here.stream().anyMatch(one -> one.head().equals(copy.head()) && !one.isAt(damaged));
    return isHere ? Optional.empty() : Optional.of(remote.fetch(copy));
  }

  /// Fetches as [CheckpointStore#fetchLatest] does, among the checkpoints that were saved before a save.
  Optional<CheckpointFolder> fetchBefore(long sequence, boolean fallBack) {
    return fetch(
        one -> one.sequence() < sequence,
        (ours, there) -> ours.sequence() >= there.sequence(),
        fallBack);
  }

  /// Fetches a step's checkpoint, as [CheckpointStore#fetch] does.
  Optional<CheckpointFolder> fetchStep(long step) {
    return fetch(one -> one.step() == step, (_, _) -> true, false);
  }

  /// @param serves whether a checkpoint in the folder makes a copy in the other store needless; both match
  ///     `wanted`
  private Optional<CheckpointFolder> fetch(
      Predicate<CheckpointFolder> wanted,
      BiPredicate<CheckpointFolder, CheckpointFolder> serves,
      boolean fallBack) {
    here.removeIf(one -> StoreFolder.hasNoManifest(one.folder()));
    List<CheckpointFolder> ours = here.stream().filter(wanted).toList();
    Set<CheckpointFolder> tried = new HashSet<>();
    MalformedFileException damage = null;
    while (true) {
      Optional<CheckpointFolder> next =
          remote.checkpoints().reversed().stream()
              .filter(wanted)
              .filter(one -> !tried.contains(one))
              .findFirst();
      if (next.isEmpty() || ours.stream().anyMatch(one -> serves.test(one, next.get()))) {
        if (damage != null && ours.isEmpty()) {
          throw damage;
        }
        return Optional.empty();
      }
      try {
        return Optional.of(remote.fetch(next.get()));
      } catch (MalformedFileException damaged) {
        if (!fallBack) {
          throw damaged;
        }
        LOG.warn("DAMAGED CHECKPOINT, falling back to an earlier one: {}", damaged.getMessage());
        tried.add(next.get());
        damage = damaged;
      } catch (TransferException failed) {
        // Another saver may have removed the copy since it was listed.
        if (!failed.isNotFound() || !remote.refresh()) {
          throw failed;
        }
      }
    }
  }

  @Override
  public String toString() {
    return remote.toString();
  }
}
