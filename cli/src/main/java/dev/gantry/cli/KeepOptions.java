// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.checkpoint.Retention;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import java.util.List;
import java.util.Optional;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/// The options for the rules that keep checkpoints. The rules are those of a checkpoint saver.
final class KeepOptions {
  @Option(
      names = "--keep-last",
      paramLabel = "N",
      description = "Keep the N checkpoints saved last.")
  private @Nullable Integer last;

  @Option(
      names = "--keep-every",
      paramLabel = "STEPS",
      description = "Keep checkpoints whose step is a multiple of STEPS.")
  private @Nullable Long every;

  @Option(
      names = "--keep-best",
      paramLabel = "N",
      description = "Keep the N best checkpoints by --metric and --goal.")
  private @Nullable Integer best;

  @Option(names = "--metric", paramLabel = "NAME", description = "The metric of --keep-best.")
  private @Nullable String metric;

  @Option(
      names = "--goal",
      paramLabel = "GOAL",
      description = "The goal of --keep-best for the metric: ${COMPLETION-CANDIDATES}.")
  private Retention.@Nullable Goal goal;

  /// Returns the rules that were given; empty if none was given.
  ///
  /// @param saves the checkpoints that the rules are applied to
  /// @throws MisuseException if an option is out of range, needs another option, or names a metric
  ///     that no checkpoint has
  Optional<Retention> retention(List<CheckpointFolder> saves) {
    Optional<Retention> given = given();
    given.flatMap(Retention::best).ifPresent(rule -> requireMetric(rule, saves));
    return given;
  }

  private Optional<Retention> given() {
    if (last == null && every == null && best == null && metric == null && goal == null) {
      return Optional.empty();
    }
    if (last != null) {
      MisuseException.requireRange("--keep-last", last, 1, Integer.MAX_VALUE);
    }
    if (every != null) {
      MisuseException.requireRange("--keep-every", every, 1, Long.MAX_VALUE);
    }
    return Optional.of(
        new Retention(last == null ? 0 : last, every == null ? 0 : every, bestRule()));
  }

  private Optional<Retention.Best> bestRule() {
    if (best == null && metric == null && goal == null) {
      return Optional.empty();
    }
    if (best == null || metric == null || goal == null) {
      throw new MisuseException(
          "--keep-best N, --metric NAME and --goal minimize or maximize must be given together");
    }
    MisuseException.requireRange("--keep-best", best, 1, Integer.MAX_VALUE);
    return Optional.of(new Retention.Best(metric, best, goal));
  }

  private static void requireMetric(Retention.Best rule, List<CheckpointFolder> saves) {
    if (!saves.isEmpty() && rule.of(saves).isEmpty()) {
      TreeSet<String> known = new TreeSet<>();
      saves.forEach(one -> known.addAll(one.metrics().keySet()));
      throw new MisuseException(
          "--metric: no checkpoint has the metric \"%s\"; %s"
              .formatted(
                  rule.metric(),
                  known.isEmpty()
                      ? "they have no metrics"
                      : "their metrics are " + String.join(", ", known)));
    }
  }
}
