// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MalformedFileException;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What a folder of checkpoints holds.
///
/// @param checkpoints in the order in which they were saved; of those of one step only the last
/// @param damaged those whose manifest cannot be used, and why
/// @param doubtful those of the damaged that may have been saved after all of `checkpoints`, as far
///     as their folders' names and the rest of their manifests tell
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

  /// The one that was saved last.
  ///
  /// @throws MalformedFileException if that may be one of the damaged
  public Optional<CheckpointFolder> latest() {
    if (!doubtful.isEmpty()) {
      throw doubtful.getFirst();
    }
    return latestWhole();
  }

  /// Warns of the damaged, for callers that go on without them.
  public CheckpointListing warned() {
    damaged.forEach(one -> LOG.warn("DAMAGED CHECKPOINT, left out: {}", one.getMessage()));
    return this;
  }

  /// The one that was saved last but for the damaged.
  public Optional<CheckpointFolder> latestWhole() {
    return checkpoints.isEmpty() ? Optional.empty() : Optional.of(checkpoints.getLast());
  }

  public Optional<CheckpointFolder> ofStep(long step) {
    return checkpoints.stream().filter(one -> one.step() == step).findFirst();
  }
}
