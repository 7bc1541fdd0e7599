// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.training.Trainer;
import ai.djl.training.listener.EarlyStoppingListener;
import ai.djl.training.listener.EvaluatorTrainingListener;
import ai.djl.training.listener.TrainingListener;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;

/// The listeners of a trainer that DJL calls before the listener that saves checkpoints. When an
/// epoch is saved, only these listeners have measured the epoch, or may have ended the training.
public record EarlierListeners(List<TrainingListener> listeners) {
  /// @param listener the listener that saves the checkpoints
  public static EarlierListeners of(Trainer trainer, TrainingListener listener) {
    List<TrainingListener> all = new ArrayList<>();
    trainer.notifyListeners(all::add);
    int place = all.indexOf(listener);
    if (place < 0) {
      // The trainer does not list this listener, so another listener calls it, whose position is
      // unknown. The position is taken to be right.
      all.removeIf(EarlyStoppingListener.class::isInstance);
      return new EarlierListeners(all);
    }
    return new EarlierListeners(all.subList(0, place));
  }

  /// @throws MisuseException if one of them ends a training before its last epoch is saved
  public void requireNoEarlyStop() {
    if (listeners.stream().anyMatch(EarlyStoppingListener.class::isInstance)) {
      throw new MisuseException(
          "CheckpointListener must come before EarlyStoppingListener, which ends the training"
              + " before its last epoch is saved");
    }
  }

  /// @param metric the metric by which the best checkpoints are kept
  /// @throws MisuseException if these listeners measure no such metric
  public void requireMetric(String metric, Trainer trainer) {
    if (evaluators().findAny().isEmpty()) {
      throw new MisuseException(
          "optKeepBest is \""
              + metric
              + "\", but this training has no metrics: add DJL's EvaluatorTrainingListener before"
              + " CheckpointListener");
    }
    List<String> names =
        Stream.of("train_", "validate_")
            .flatMap(stage ->
                Stream.concat(
                        trainer.getEvaluators().stream().map(evaluator -> evaluator.getName()),
                        Stream.of("loss"))
                    .map(name -> stage + name))
            .toList();
    if (!names.contains(metric)) {
      throw new MisuseException(
          "optKeepBest is \"%s\"; it must be one of this training's metrics: %s"
              .formatted(metric, String.join(", ", names)));
    }
  }

  /// The metrics of the epoch that has just ended by their names, such as `validate_loss`.
  public SequencedMap<String, Double> metrics() {
    SequencedMap<String, Double> metrics = new TreeMap<>();
    evaluators()
        .map(EvaluatorTrainingListener::getLatestEvaluations)
        .map(Map::entrySet)
        .flatMap(Set::stream)
        .forEach(entry -> metrics.put(entry.getKey(), entry.getValue().doubleValue()));
    return metrics;
  }

  private Stream<EvaluatorTrainingListener> evaluators() {
    return listeners.stream()
        .filter(EvaluatorTrainingListener.class::isInstance)
        .map(EvaluatorTrainingListener.class::cast);
  }
}
