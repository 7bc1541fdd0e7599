package dev.gantry.formats.checkpoint;

import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Which checkpoints stay. One stays if any rule wants it; the one that was saved last always does.
/// Immutable.
///
/// @param last how many of those saved last stay, or 0 where this rule keeps none
/// @param everySteps those of steps that are multiples of this stay, or 0 where this rule keeps
///     none
/// @param best those stay that a metric finds best
public record Retention(int last, long everySteps, Optional<Best> best) {
  /// Everything stays.
  public static final Retention ALL = new Retention(Integer.MAX_VALUE, 0, Optional.empty());

  public Retention {
    if (last < 0 || everySteps < 0) {
      throw new IllegalArgumentException(
          "neither of them can be negative: last " + last + ", every " + everySteps + " steps");
    }
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
      if (count <= 0) {
        throw new IllegalArgumentException("the best " + count + " checkpoints are none");
      }
    }

    /// The best of these, or empty where none has the metric.
    public Optional<StoredCheckpoint> of(List<StoredCheckpoint> checkpoints) {
      return checkpoints.stream()
          .filter(one -> rates(one.manifest()))
          .min(Comparator.comparing(StoredCheckpoint::manifest, order()));
    }

    /// The best first; of equals, the one that was saved earlier.
    Comparator<Manifest> order() {
      Comparator<Manifest> byValue =
          Comparator.comparingDouble(
              manifest -> goal == Goal.MINIMIZE ? value(manifest) : -value(manifest));
      return byValue.thenComparing(Comparator.comparingLong(Manifest::sequence));
    }

    boolean rates(Manifest manifest) {
      return !Double.isNaN(value(manifest));
    }

    private double value(Manifest manifest) {
      return manifest.metrics().getOrDefault(metric, Double.NaN);
    }
  }

  /// The checkpoints that need not stay. Of several of one step only the one saved last can.
  public List<StoredCheckpoint> surplus(List<StoredCheckpoint> all) {
    List<Manifest> newestFirst =
        all.stream()
            .map(StoredCheckpoint::manifest)
            .sorted(Comparator.comparingLong(Manifest::sequence).reversed())
            .toList();
    Set<Long> steps = new HashSet<>();
    List<Manifest> current =
        newestFirst.stream().filter(manifest -> steps.add(manifest.step())).toList();
    Set<Long> kept = new HashSet<>();
    current.stream().limit(Math.max(1, last)).forEach(manifest -> kept.add(manifest.sequence()));
    current.stream()
        .filter(manifest -> everySteps > 0 && manifest.step() % everySteps == 0)
        .forEach(manifest -> kept.add(manifest.sequence()));
    best.ifPresent(rule ->
        current.stream()
            .filter(rule::rates)
            .sorted(rule.order())
            .limit(rule.count())
            .forEach(manifest -> kept.add(manifest.sequence())));
    return all.stream().filter(one -> !kept.contains(one.manifest().sequence())).toList();
  }
}
