// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

import dev.gantry.core.MisuseException;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Says which checkpoints stay; the others are removed. A checkpoint stays if any rule keeps it, or if it
/// was saved last. If all of those have parameters that are NaN or infinite, the last checkpoint whose
/// parameters are finite stays, too. Immutable.
///
/// @param last how many of the checkpoints saved last stay; 0 turns this rule off
/// @param everySteps keeps checkpoints whose step is a multiple of this; 0 turns this rule off
/// @param best keeps the best checkpoints by a metric
public record Retention(int last, long everySteps, Optional<Best> best) {
  /// Keeps all checkpoints.
  public static final Retention ALL = new Retention(Integer.MAX_VALUE, 0, Optional.empty());

  private static final Comparator<StoredCheckpoint> NEWEST_FIRST =
      Comparator.comparingLong(StoredCheckpoint::sequence).reversed();

  public Retention {
    MisuseException.requireRange("keep last", last, 0, Integer.MAX_VALUE);
    MisuseException.requireRange("keep every", everySteps, 0, Long.MAX_VALUE);
  }

  /// Whether small or large values of a metric are good.
  public enum Goal {
    MINIMIZE,
    MAXIMIZE
  }

  /// Keeps the best checkpoints by a metric. A checkpoint that lacks the metric, or whose value is NaN, is
  /// never among the best.
  ///
  /// @param count how many checkpoints stay
  public record Best(String metric, int count, Goal goal) {
    public Best {
      MisuseException.requireRange("keep best", count, 1, Integer.MAX_VALUE);
    }

    /// Returns the best of some checkpoints, or empty where none has the metric.
    public <T extends StoredCheckpoint> Optional<T> of(List<T> checkpoints) {
      return checkpoints.stream().filter(this::rates).min(order());
    }

    /// Puts the best checkpoint first; of two equal ones, the one that was saved earlier.
    Comparator<StoredCheckpoint> order() {
      Comparator<StoredCheckpoint> byValue =
          Comparator.comparingDouble(one -> goal == Goal.MINIMIZE ? value(one) : -value(one));
      return byValue.thenComparing(NEWEST_FIRST.reversed());
    }

    boolean rates(StoredCheckpoint one) {
      return !Double.isNaN(value(one));
    }

    private double value(StoredCheckpoint one) {
      return one.metrics().getOrDefault(metric, Double.NaN);
    }
  }

  /// Returns the checkpoints that no rule keeps. Of several checkpoints of one step, only the one saved
  /// last can stay.
  public <T extends StoredCheckpoint> List<T> surplus(List<T> all) {
    Set<Long> steps = new HashSet<>();
    List<T> current =
        all.stream().sorted(NEWEST_FIRST).filter(one -> steps.add(one.step())).toList();
    Set<StoredCheckpoint> kept = new HashSet<>();
    current.stream().limit(Math.max(1, last)).forEach(kept::add);
    current.stream()
        .filter(one -> everySteps > 0 && one.step() % everySteps == 0)
        .forEach(kept::add);
    best.ifPresent(rule ->
        current.stream()
            .filter(rule::rates)
            .sorted(rule.order())
            .limit(rule.count())
            .forEach(kept::add));
    if (kept.stream().noneMatch(StoredCheckpoint::isFinite)) {
      current.stream().filter(StoredCheckpoint::isFinite).findFirst().ifPresent(kept::add);
    }
    return all.stream().filter(one -> !kept.contains(one)).toList();
  }
}
