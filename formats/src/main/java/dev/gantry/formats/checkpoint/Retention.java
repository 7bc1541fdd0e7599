// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

import dev.gantry.core.MisuseException;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Says which checkpoints stay. One stays if any rule wants it; the one that was saved last always does. If all
/// of these have values that are NaN or infinite, the last one without such values stays, too. Immutable.
///
/// @param last how many of those saved last stay, or 0 where this rule keeps none
/// @param everySteps those of steps that are multiples of this stay, or 0 where this rule keeps
///     none
/// @param best those stay that a metric finds best
public record Retention(int last, long everySteps, Optional<Best> best) {
  /// Everything stays.
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

  /// The best by a metric. A checkpoint that lacks it, or whose value is NaN, is never among them.
  ///
  /// @param count how many stay
  public record Best(String metric, int count, Goal goal) {
    public Best {
      MisuseException.requireRange("keep best", count, 1, Integer.MAX_VALUE);
    }

    /// The best of these, or empty where none has the metric.
    public <T extends StoredCheckpoint> Optional<T> of(List<T> checkpoints) {
      return checkpoints.stream().filter(this::rates).min(order());
    }

    /// The best first; of equals, the one that was saved earlier.
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

  /// The checkpoints that need not stay. Of several of one step only the one saved last can.
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
