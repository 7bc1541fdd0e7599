// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.datasets;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.batches.DatasetState;
import java.util.Comparator;
import java.util.Optional;

/// The position that a dataset's state holds. A resumed training that repeats batches is found by
/// it.
///
/// @param epoch from 0
/// @param batch how many batches of the epoch were taken
public record ResumedPosition(long epoch, long batch) {
  private static final Comparator<ResumedPosition> ORDER =
      Comparator.comparingLong(ResumedPosition::epoch).thenComparingLong(ResumedPosition::batch);

  /// Warns if a dataset was not restored. In that case its position after the training's first
  /// batch is not past the position in the checkpoint.
  ///
  /// @param saved the dataset's state in the checkpoint
  /// @param state the dataset's state after the training's first batch
  /// @return the warning; empty if the dataset was restored, or if a state is not from one of
  ///     Gantry's datasets
  public static Optional<String> warning(String saved, String state) {
    return of(saved)
        .flatMap(before ->
            of(state)
                .filter(now -> ORDER.compare(now, before) <= 0)
                .map(now ->
                    "the checkpoint has the dataset's position ("
                        + before
                        + "), and the dataset is not behind it ("
                        + now
                        + "): it gives batches again that the training has seen. Call restore of"
                        + " the dataset with RestoredTraining.datasetState() before the training"
                        + " takes its first batch"));
  }

  private static Optional<ResumedPosition> of(String state) {
    try {
      DatasetState one = DatasetState.parse(state);
      return Optional.of(new ResumedPosition(one.epoch(), one.batch()));
    } catch (MisuseException _) {
      return ofMixture(state);
    }
  }

  private static Optional<ResumedPosition> ofMixture(String state) {
    try {
      MixedState mixed = MixedState.parse(state);
      long given = mixed.given().stream().mapToLong(Long::longValue).sum();
      return Optional.of(new ResumedPosition(mixed.epoch(), given));
    } catch (MisuseException _) {
      return Optional.empty();
    }
  }

  @Override
  public String toString() {
    return "epoch " + epoch + ", batch " + batch;
  }
}
