// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import java.util.function.Predicate;

/// An optimizer's state for each parameter, by names that are the same in any process. A parameter
/// that was never updated has no entries.
///
/// @param <A> the type of the arrays: arrays, or their dtypes and shapes before the values are
///     read
/// @param kind DJL's name of the optimizer's class, such as `Adam`
/// @param arrays the arrays by state and path of the parameter, such as `means/01Linear_weight`;
///     each has the parameter's shape and type. This record does not own them
/// @param updateCounts how often each parameter was updated, by its path. With several devices, DJL
///     counts an update on each of them
/// @param updates the count from which learning rates are computed: the highest count of all
///     parameters, even of those that the model no longer has
public record SavedOptimizer<A>(
    String kind,
    SequencedMap<String, A> arrays,
    SequencedMap<String, Integer> updateCounts,
    int updates) {
  public SavedOptimizer {
    arrays = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(arrays));
    updateCounts = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(updateCounts));
  }

  /// This state without the update counts of some parameters.
  ///
  /// @param left whether the count of a parameter is left out, by the parameter's path
  SavedOptimizer<A> without(Predicate<String> left) {
    SequencedMap<String, Integer> counts = new LinkedHashMap<>(updateCounts);
    counts.keySet().removeIf(left);
    return new SavedOptimizer<>(kind, arrays, counts, updates);
  }

  /// This state with update counts as DJL would have counted them with another number of devices.
  ///
  /// @param from the number of devices on which each update was counted so far
  /// @param to the number of devices on which each update is counted from now on
  /// @param begin the count at which the optimizer began
  SavedOptimizer<A> counted(int from, int to, int begin) {
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    updateCounts.forEach((path, count) -> counts.put(path, counted(count, from, to, begin)));
    return new SavedOptimizer<>(kind, arrays, counts, counted(updates, from, to, begin));
  }

  private static int counted(int count, int from, int to, int begin) {
    return Math.toIntExact(
        Math.clamp(begin + ((long) count - begin) * to / from, 0, Integer.MAX_VALUE));
  }
}
