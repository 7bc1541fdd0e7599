// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

import dev.gantry.core.MisuseException;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

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
    MisuseException.requireGiven("best", best);
  }

  /// A rule that keeps checkpoints.
  public enum Rule {
    /// The checkpoint is among the last ones.
    LAST,
    /// Its step is a multiple of a number.
    EVERY,
    /// It is among the best by a metric.
    BEST,
    /// It is the last one whose parameters are finite.
    FINITE
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
      MisuseException.requireGiven("metric", metric);
      MisuseException.requireRange("keep best", count, 1, Integer.MAX_VALUE);
      MisuseException.requireGiven("goal", goal);
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

  /// Returns the checkpoints that no rule keeps.
  public <T extends StoredCheckpoint> List<T> surplus(List<T> all) {
    Map<T, Set<Rule>> kept = kept(all);
    return all.stream().filter(one -> !kept.containsKey(one)).toList();
  }

  /// Returns the checkpoints that stay, each with the rules that keep it. If there are several
  /// checkpoints of one step, only the one saved last can stay; [Rule#FINITE] may keep another one.
  public <T extends StoredCheckpoint> Map<T, Set<Rule>> kept(List<T> all) {
    Set<Long> steps = new HashSet<>();
    List<T> current =
        all.stream().sorted(NEWEST_FIRST).filter(one -> steps.add(one.step())).toList();
    Map<T, Set<Rule>> kept = new HashMap<>();
    keep(kept, Rule.LAST, current.stream().limit(Math.max(1, last)));
    keep(
        kept,
        Rule.EVERY,
        current.stream().filter(one -> everySteps > 0 && one.step() % everySteps == 0));
    best.ifPresent(rule ->
        keep(
            kept,
            Rule.BEST,
            current.stream().filter(rule::rates).sorted(rule.order()).limit(rule.count())));
    if (kept.keySet().stream().noneMatch(StoredCheckpoint::isFinite)) {
      keep(
          kept,
          Rule.FINITE,
          all.stream().sorted(NEWEST_FIRST).filter(StoredCheckpoint::isFinite).limit(1));
    }
    return kept;
  }

  private static <T> void keep(Map<T, Set<Rule>> kept, Rule rule, Stream<T> checkpoints) {
    checkpoints.forEach(
        one -> kept.computeIfAbsent(one, _ -> EnumSet.noneOf(Rule.class)).add(rule));
  }
}
