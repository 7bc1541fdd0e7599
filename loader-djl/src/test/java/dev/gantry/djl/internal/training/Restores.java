// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// Restores from existing arrays, part by part, like a restore from files.
final class Restores {
  private Restores() {}

  static void optimizer(OptimizerState state, SavedOptimizer<NDArray> saved) {
    SavedOptimizer<ArrayKind> withoutValues =
        new SavedOptimizer<>(
            saved.kind(), kinds(saved.arrays()), saved.updateCounts(), saved.updates());
    try (StateReplacement replacement = state.replace(withoutValues)) {
      ArrayTargets targets = new ArrayTargets(replacement.targets());
      saved.arrays().forEach((key, values) -> targets.take(key, values, 0));
      replacement.apply();
    }
  }

  static void parameters(TrainerParts parameters, Map<String, NDArray> saved) {
    parameters.check(kinds(saved));
    ArrayTargets targets = new ArrayTargets(parameters.targets());
    saved.forEach((path, values) -> targets.take(path, values, 0));
    parameters.clearGradients();
  }

  private static SequencedMap<String, ArrayKind> kinds(Map<String, NDArray> arrays) {
    SequencedMap<String, ArrayKind> kinds = new LinkedHashMap<>();
    arrays.forEach((name, array) -> kinds.put(name, ArrayKind.of(array)));
    return kinds;
  }
}
