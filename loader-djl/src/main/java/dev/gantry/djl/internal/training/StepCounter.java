// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.Trainer;
import java.util.Arrays;

/// Notices the steps of a training by its optimizer's update counts, which each step raises. It is asked
/// with each batch, so it looks for the parameters only once.
///
/// Call it on the thread that steps the trainer.
public final class StepCounter {
  private final OptimizerState optimizer;

  /// The counts at the last [#take]; empty before the first one.
  private int[] counts = {};

  private StepCounter(OptimizerState optimizer) {
    this.optimizer = optimizer;
  }

  /// @throws dev.gantry.core.MisuseException as [OptimizerState#of]
  public static StepCounter of(Trainer trainer) {
    return new StepCounter(OptimizerState.of(trainer));
  }

  /// Remembers the counts as they are now.
  public void take() {
    counts = optimizer.countsNow();
  }

  /// Whether a step was made since [#take]. All counts must rise: a step that failed halfway does not
  /// count.
  public boolean isStepped() {
    int[] now = optimizer.countsNow();
    for (int i = 0; i < counts.length; i++) {
      // A parameter that was frozen has no count.
      boolean counted = counts[i] != OptimizerState.NO_COUNT && now[i] != OptimizerState.NO_COUNT;
      if (counted && now[i] <= counts[i]) {
        return false;
      }
    }
    return counts.length > 0;
  }

  /// Whether no count has changed since [#take], as a step or a restore would.
  public boolean isUnchanged() {
    return Arrays.equals(counts, optimizer.countsNow());
  }
}
