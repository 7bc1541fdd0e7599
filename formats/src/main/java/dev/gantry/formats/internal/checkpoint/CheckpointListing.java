// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Lists the checkpoints in a folder.
///
/// @param checkpoints the complete ones in the order of their saves; only the last one of each step
/// @param damaged an error for each checkpoint whose manifest cannot be used
/// @param doubtful the errors of damaged checkpoints that may be newer than all of `checkpoints`, as far as
///     their folders' names and the rest of their manifests tell
public record CheckpointListing(
    List<CheckpointFolder> checkpoints,
    List<MalformedFileException> damaged,
    List<MalformedFileException> doubtful) {
  private static final Logger LOG = LoggerFactory.getLogger(CheckpointStore.class);

  public CheckpointListing {
    checkpoints = List.copyOf(checkpoints);
    damaged = List.copyOf(damaged);
    doubtful = List.copyOf(doubtful);
  }

  /// Returns the checkpoint that was saved last, or empty if there is none.
  ///
  /// @throws MalformedFileException if a damaged checkpoint may have been saved later
  public Optional<CheckpointFolder> latest() {
    if (!doubtful.isEmpty()) {
      throw doubtful.getFirst();
    }
    return latestWhole();
  }

  /// Logs a warning for each damaged checkpoint, for callers that go on without it.
  public CheckpointListing warned() {
    damaged.forEach(one -> LOG.warn("DAMAGED CHECKPOINT, left out: {}", one.getMessage()));
    return this;
  }

  /// Returns the undamaged checkpoint that was saved last.
  public Optional<CheckpointFolder> latestWhole() {
    return checkpoints.isEmpty() ? Optional.empty() : Optional.of(checkpoints.getLast());
  }

  public Optional<CheckpointFolder> ofStep(long step) {
    return checkpoints.stream().filter(one -> one.step() == step).findFirst();
  }
}
