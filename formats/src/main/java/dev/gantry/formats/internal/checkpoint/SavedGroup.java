// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.Supplier;

/// The tensors of a checkpoint's group, opened for reading while a training may save and remove
/// checkpoints.
///
/// @param sums the manifest's checksums of the tensors, for loads to compare
public record SavedGroup(WeightsCatalogue tensors, Supplier<List<KnownChecksums.Known>> sums) {
  /// Opens a checkpoint of a local folder.
  ///
  /// @return empty if no checkpoint is chosen
  /// @throws MalformedFileException if the chosen checkpoint is damaged
  /// @throws TransferException if a file cannot be opened or read
  public static Optional<SavedGroup> choose(
      GantrySession session,
      Path directory,
      String group,
      Function<CheckpointListing, Optional<CheckpointFolder>> choice) {
    return choose(
        () -> choice.apply(CheckpointStore.list(session, directory)), saved -> saved.group(group));
  }

  /// Opens the checkpoint of another store's folder that was saved last.
  ///
  /// @return empty if the folder has no checkpoint
  /// @throws dev.gantry.core.MisuseException if no store serves the location, or the store cannot list
  ///     files
  /// @throws MalformedFileException if the checkpoint is damaged
  /// @throws TransferException if the store does not answer, or refuses access
  public static Optional<SavedGroup> latest(
      GantrySession session, Location.Remote folder, String group) {
    RemoteScan scan = RemoteScan.of(session, folder);
    return choose(
        () -> scan.checkpoints().reversed().stream().findFirst(), saved -> saved.group(group));
  }

  private static Optional<SavedGroup> choose(
      Supplier<Optional<CheckpointFolder>> choice, Function<CheckpointFolder, SavedGroup> open) {
    Optional<CheckpointFolder> chosen = choice.get();
    while (chosen.isPresent()) {
      try {
        return chosen.map(open);
      } catch (MalformedFileException | TransferException failed) {
        // The checkpoint may have been removed since it was listed. In this case the choice is
        // now another one.
        Optional<CheckpointFolder> now = choice.get();
        if (now.equals(chosen)) {
          throw failed;
        }
        chosen = now;
      }
    }
    return Optional.empty();
  }
}
