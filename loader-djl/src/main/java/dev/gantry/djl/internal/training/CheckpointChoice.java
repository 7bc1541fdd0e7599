// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Model;
import ai.djl.training.Trainer;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import java.nio.file.Path;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Chooses the checkpoint of a folder that a training resumes from, and falls back from damaged ones.
///
/// @param verify whether to compare the checksums of all tensors
/// @param fallBack whether an earlier checkpoint may replace a damaged one
/// @param userStates restored with a trainer
public record CheckpointChoice(
    GantrySession session,
    Path directory,
    boolean verify,
    boolean fallBack,
    UserStates userStates) {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointChoice.class);

  /// As [CheckpointSaver#restoreLatest][dev.gantry.djl.CheckpointSaver] has it.
  public Optional<TrainingRestore.Restored> latest(Model model, @Nullable Trainer trainer) {
    CheckpointStore.Listing listing = CheckpointStore.list(directory);
    GantryException last = null;
    for (MalformedFileException damaged : listing.damaged()) {
      if (listing.doubtful().contains(damaged)) {
        orFallBack(damaged);
        last = damaged;
      } else {
        LOG.warn(
            "DAMAGED CHECKPOINT, older than the one that is restored: {}", damaged.getMessage());
      }
    }
    for (CheckpointFolder checkpoint : listing.checkpoints().reversed()) {
      try {
        return Optional.of(restore(checkpoint, model, trainer));
      } catch (MalformedFileException damaged) {
        orFallBack(damaged);
        last = damaged;
      } catch (TransferException failed) {
        if (!isDamage(failed)) {
          throw failed;
        }
        orFallBack(failed);
        last = failed;
      }
    }
    if (last != null) {
      // All checkpoints are damaged, which is not the same as having none.
      throw last;
    }
    return Optional.empty();
  }

  private void orFallBack(GantryException damage) {
    if (!fallBack) {
      throw damage;
    }
    LOG.warn("DAMAGED CHECKPOINT, falling back to an earlier one: {}", damage.getMessage());
  }

  /// Whether the disk has lost a sector or the file its end.
  private static boolean isDamage(TransferException failed) {
    return switch (failed.failure()) {
      case Failure.Errno(_, String name, _) -> name.equals("EIO");
      case Failure.EndOfFile _, Failure.Malformed _ -> true;
      case Failure.CuFile _,
          Failure.Cuda _,
          Failure.Torch _,
          Failure.Remote _,
          Failure.NothingWritten _,
          Failure.Cancelled _ ->
          false;
    };
  }

  /// As [CheckpointSaver#restore][dev.gantry.djl.CheckpointSaver] has it.
  public TrainingRestore.Restored ofStep(long step, Model model, @Nullable Trainer trainer) {
    CheckpointStore.Listing listing = CheckpointStore.list(directory);
    return restore(listing.ofStep(step).orElseThrow(() -> absence(listing, step)), model, trainer);
  }

  /// A damaged manifest does not name its step; its folder does.
  private GantryException absence(CheckpointStore.Listing listing, long step) {
    return listing.damaged().stream()
        .filter(damage -> {
          Path manifest = damage.file().path();
          Path folder = manifest.getName(manifest.getNameCount() - 2);
          return folder.toString().matches("gantry-step-" + step + "(-[0-9]+)?");
        })
        .<GantryException>map(damage -> damage)
        .findFirst()
        .orElseGet(() -> new MisuseException(directory + " has no checkpoint of step " + step));
  }

  private TrainingRestore.Restored restore(
      CheckpointFolder checkpoint, Model model, @Nullable Trainer trainer) {
    return new TrainingRestore(session, checkpoint, verify, userStates, LoadSettings.DEFAULTS)
        .into(model, trainer);
  }
}
