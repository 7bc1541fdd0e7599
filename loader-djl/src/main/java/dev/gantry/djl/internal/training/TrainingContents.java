// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.SequencedMap;

/// What a checkpoint of a training holds.
///
/// @param groups the arrays by their names, by group. They are the training's own: the next step
///     changes them
/// @param state as entries of [SavedState]
public record TrainingContents(
    SequencedMap<String, SequencedMap<String, NDArray>> groups,
    SequencedMap<String, String> state) {
  /// The groups of a checkpoint.
  public static final String MODEL = "model";

  public static final String OPTIMIZER = "optimizer";

  private TrainingContents() {
    this(new LinkedHashMap<>(), new LinkedHashMap<>());
  }

  /// The contents of a model without a trainer.
  ///
  /// @throws MisuseException if a parameter is not initialised
  public static TrainingContents of(Model model, long epoch, Optional<String> dataset) {
    SequencedMap<String, NDArray> parameters = new LinkedHashMap<>();
    TrainerParts.parameters(model.getBlock())
        .forEach((path, parameter) -> {
          if (!parameter.isInitialized()) {
            throw new MisuseException("the parameter '" + path + "' is not initialised");
          }
          parameters.put(path, parameter.getArray());
        });
    return new TrainingContents().with(parameters, epoch, dataset);
  }

  /// The contents of a training.
  ///
  /// @param moment replaces what has changed since
  /// @param states of your own
  /// @throws MisuseException if the trainer trains another model, a parameter is not initialised,
  ///     or the optimizer's state cannot be reached
  public static TrainingContents of(
      Model model,
      Trainer trainer,
      long epoch,
      Optional<String> dataset,
      Optional<TrainingMoment> moment,
      UserStates states) {
    requireOf(model, trainer);
    SequencedMap<String, NDArray> parameters = TrainerParts.of(trainer).values();
    moment.ifPresent(earlier -> parameters.putAll(earlier.arrays()));
    TrainingContents contents = new TrainingContents().with(parameters, epoch, dataset);
    SavedOptimizer<NDArray> optimizer = OptimizerState.of(trainer).values();
    contents.groups.put(OPTIMIZER, optimizer.arrays());
    contents.state.put(SavedState.OPTIMIZER_KIND, optimizer.kind());
    contents.state.put(SavedState.OPTIMIZER_UPDATES, Integer.toString(optimizer.updates()));
    optimizer
        .updateCounts()
        .forEach((path, count) ->
            contents.state.put(SavedState.OPTIMIZER_COUNT + path, count.toString()));
    contents.state.putAll(
        moment.map(TrainingMoment::state).orElseGet(() -> TrainingMoment.state(trainer, states)));
    return contents;
  }

  /// As the contents of a training that has made a step, of which only the sizes count.
  ///
  /// @throws MisuseException as [#of]
  public static TrainingContents expected(Model model, Trainer trainer) {
    requireOf(model, trainer);
    TrainingContents contents =
        new TrainingContents().with(TrainerParts.of(trainer).values(), 0, Optional.empty());
    contents.groups.put(OPTIMIZER, OptimizerState.of(trainer).expected());
    return contents;
  }

  private TrainingContents with(
      SequencedMap<String, NDArray> parameters, long epoch, Optional<String> dataset) {
    groups.put(MODEL, parameters);
    state.put(SavedState.EPOCH, Long.toString(epoch));
    dataset.ifPresent(text -> state.put(SavedState.DATASET, text));
    return this;
  }

  /// @throws MisuseException if the trainer trains another model
  public static void requireOf(Model model, Trainer trainer) {
    if (!trainer.getModel().getBlock().equals(model.getBlock())) {
      throw new MisuseException("the trainer is not of this model");
    }
  }
}
