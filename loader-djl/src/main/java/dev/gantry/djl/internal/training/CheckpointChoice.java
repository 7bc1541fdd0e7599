// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import dev.gantry.core.GantryException;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.internal.checkpoint.CheckpointCheck;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.CheckpointListing;
import dev.gantry.formats.internal.checkpoint.CheckpointStore;
import dev.gantry.formats.internal.checkpoint.StoreFolder;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Chooses the checkpoint of a folder that a training resumes from, and falls back from damaged ones.
///
/// @param store the store of the folder
/// @param verify whether to compare the checksums of all tensors
/// @param fallBack whether an earlier checkpoint may replace a damaged one
/// @param userStates the user's states, which are restored with a trainer
public record CheckpointChoice(
    GantrySession session,
    Path directory,
    CheckpointStore store,
    boolean verify,
    boolean fallBack,
    UserStates userStates) {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointChoice.class);

  /// Thrown for a damaged checkpoint of which the remote store may have a copy.
  private static final class DamagedException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final transient Path folder;

    DamagedException(Path folder, GantryException damage) {
      super(damage.getMessage(), damage);
      this.folder = folder;
    }
  }

  /// The checkpoint on the disk that was saved last.
  public Optional<StoredCheckpoint> latest() {
    CheckpointListing listing = CheckpointStore.list(session, directory);
    return namingOption(() -> fallBack ? listing.warned().latestWhole() : listing.latest())
        .map(checkpoint -> checkpoint);
  }

  /// Adds to the error of a damaged checkpoint which option skips damaged checkpoints.
  private <T> T namingOption(Supplier<T> latest) {
    try {
      return latest.get();
    } catch (MalformedFileException damaged) {
      if (fallBack) {
        throw damaged;
      }
      String detail =
          damaged.detail() + "; optFallBack(true) takes the last intact checkpoint before it";
      MalformedFileException named =
          new MalformedFileException(damaged.file(), damaged.offset(), damaged.kind(), detail);
      named.initCause(damaged);
      throw named;
    }
  }

  /// Restores as documented for the restores of [CheckpointSaver][dev.gantry.djl.CheckpointSaver].
  ///
  /// @param step the step of the checkpoint; empty for the checkpoint that was saved last
  public Optional<TrainingRestore.Restored> restore(OptionalLong step, RestoreTarget target) {
    Optional<TrainingRestore.Restored> restored;
    if (step.isPresent()) {
      store.fetch(step.getAsLong());
      restored = Optional.of(mending(false, hasCopy -> ofStep(step.getAsLong(), target, hasCopy)));
    } else {
      restored =
          namingOption(() -> {
            store.fetchLatest(fallBack);
            return mending(fallBack, hasCopy -> latest(target, hasCopy));
          });
    }
    restored
        .map(TrainingRestore.Restored::checkpoint)
        .filter(checkpoint -> !checkpoint.isFinite())
        .ifPresent(checkpoint ->
            LOG.warn(
                "{}: step {} is restored, which has values that are NaN or infinite",
                checkpoint,
                checkpoint.step()));
    return restored;
  }

  /// Restores, and replaces each checkpoint that turns out to be damaged by its copy from the
  /// remote store. A checkpoint without a copy stays damaged.
  ///
  /// @param orEarlier whether an earlier checkpoint may be fetched from the remote store, too
  private <T> T mending(boolean orEarlier, Function<Predicate<Path>, T> restore) {
    Set<Path> lost = new HashSet<>();
    while (true) {
      try {
        return store.reading(() ->
            restore.apply(folder ->
                !lost.contains(folder)
                    && (store.hasCopy(folder) || (orEarlier && store.hasEarlier(folder)))));
      } catch (DamagedException damaged) {
        lost.add(damaged.folder);
        mend(damaged, orEarlier);
      }
    }
  }

  private void mend(DamagedException damaged, boolean orEarlier) {
    String reason = String.valueOf(damaged.getMessage());
    try {
      if (store.hasCopy(damaged.folder)) {
        store.fetchInstead(damaged.folder);
        LOG.warn("DAMAGED CHECKPOINT, replaced by its copy in the other store: {}", reason);
        return;
      }
    } catch (GantryException e) {
      LOG.warn("{}; its copy in the other store cannot be read: {}", reason, e.getMessage());
    }
    if (orEarlier) {
      try {
        store.fetchBefore(damaged.folder);
      } catch (GantryException e) {
        LOG.warn(
            "{}; no earlier checkpoint can be read from the other store: {}",
            reason,
            e.getMessage());
      }
    }
  }

  /// @param hasCopy whether a damaged checkpoint in a folder can be had elsewhere
  /// @throws DamagedException if the remote store may have a copy
  private Optional<TrainingRestore.Restored> latest(RestoreTarget target, Predicate<Path> hasCopy) {
    CheckpointListing listing = CheckpointStore.list(session, directory);
    GantryException last = null;
    for (MalformedFileException damaged : listing.damaged()) {
      if (listing.doubtful().contains(damaged)) {
        throwIfCopied(folder(damaged), damaged, hasCopy);
        orFallBack(damaged);
        last = damaged;
      } else {
        LOG.warn(
            "DAMAGED CHECKPOINT, older than the one that is restored: {}", damaged.getMessage());
      }
    }
    for (CheckpointFolder checkpoint : listing.checkpoints().reversed()) {
      try {
        return Optional.of(restore(checkpoint, target, hasCopy));
      } catch (MalformedFileException | TransferException failed) {
        if (!CheckpointCheck.isDamage(failed)) {
          throw failed;
        }
        orFallBack(failed);
        last = failed;
      }
    }
    if (last != null) {
      // All checkpoints are damaged; an empty result would mean that there are none.
      throw last;
    }
    return Optional.empty();
  }

  /// The checkpoint's folder that holds a damaged manifest.
  private static Path folder(MalformedFileException damaged) {
    return Objects.requireNonNull(damaged.file().path().toAbsolutePath().getParent());
  }

  private void orFallBack(GantryException damage) {
    if (!fallBack) {
      throw damage;
    }
    LOG.warn("DAMAGED CHECKPOINT, falling back to an earlier one: {}", damage.getMessage());
  }

  private static void throwIfCopied(Path folder, GantryException damage, Predicate<Path> hasCopy) {
    if (hasCopy.test(folder)) {
      throw new DamagedException(folder, damage);
    }
  }

  /// @param hasCopy whether a damaged checkpoint in a folder can be had elsewhere
  private TrainingRestore.Restored ofStep(
      long step, RestoreTarget target, Predicate<Path> hasCopy) {
    CheckpointListing listing = CheckpointStore.list(session, directory);
    Optional<CheckpointFolder> found = listing.ofStep(step);
    if (found.isPresent()) {
      return restore(found.get(), target, hasCopy);
    }
    for (MalformedFileException damaged : listing.damaged()) {
      // The step is taken from the folder's name, since the manifest is damaged.
      if (StoreFolder.step(folder(damaged)).equals(OptionalLong.of(step))) {
        throwIfCopied(folder(damaged), damaged, hasCopy);
        throw damaged;
      }
    }
    throw new MisuseException(directory + " has no checkpoint of step " + step);
  }

  /// @param hasCopy whether a damaged checkpoint in a folder can be had elsewhere
  /// @throws DamagedException if the checkpoint is damaged and the remote store may have a copy
  private TrainingRestore.Restored restore(
      CheckpointFolder checkpoint, RestoreTarget target, Predicate<Path> hasCopy) {
    try {
      return new TrainingRestore(session, checkpoint, verify, userStates, LoadSettings.DEFAULTS)
          .into(target);
    } catch (MalformedFileException | TransferException failed) {
      if (CheckpointCheck.isDamage(failed)) {
        throwIfCopied(checkpoint.folder(), failed, hasCopy);
      }
      throw failed;
    }
  }
}
