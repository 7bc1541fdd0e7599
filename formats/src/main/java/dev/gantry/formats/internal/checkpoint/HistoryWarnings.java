// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Warns, for one saver, that a folder holds checkpoints of two histories. Not thread-safe.
final class HistoryWarnings {
  private static final Logger LOG = LoggerFactory.getLogger(HistoryWarnings.class);

  private final Path root;
  private final String remote;
  private boolean warned;

  /// @param remote the other store, as messages name it
  HistoryWarnings(Path root, String remote) {
    this.root = root;
    this.remote = remote;
  }

  /// Warns if two machines continued from the same checkpoint.
  ///
  /// @param there the last checkpoint in the other store
  void warnIfTwo(List<CheckpointFolder> checkpoints, CheckpointFolder there) {
    if (!checkpoints.isEmpty()) {
      CheckpointFolder here = checkpoints.getLast();
      if (here.head().history().partedFrom(there.head().history())) {
        LOG.warn(
            "TWO HISTORIES: step {} (save {}) of {} and step {} (save {}) of {} are of trainings"
                + " that parted; restoreLatest takes the one of the higher save",
            here.step(),
            here.sequence(),
            root,
            there.step(),
            there.sequence(),
            remote);
      }
    }
  }

  /// Warns, once, if a save's training was not continued from the checkpoints that were saved
  /// last.
  ///
  /// @param lasts the checkpoints that were saved last before this save
  void warnOf(SavePlan plan, Stream<CheckpointFolder> lasts) {
    if (!warned) {
      lasts
          .filter(last -> !plan.history().contains(last.head().history()))
          .max(Comparator.comparingLong(CheckpointFolder::sequence))
          .ifPresent(last -> {
            warned = true;
            LOG.warn(
                "{}: TWO HISTORIES: step {} is saved, and the training did not go on from step {},"
                    + " which was saved last before. Of each step the later save counts, and"
                    + " restoreLatest takes the later history",
                root,
                plan.checkpoint().step(),
                last.step());
          });
    }
  }
}
