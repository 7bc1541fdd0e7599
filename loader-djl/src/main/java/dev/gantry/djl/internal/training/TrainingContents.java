// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import java.util.LinkedHashMap;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;

/// The contents of a training's checkpoint.
///
/// @param groups for each group, the arrays by their names. They are the training's own arrays, so
///     the next step changes them
/// @param state the training's state, as entries of [SavedState]
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
    return new TrainingContents().with(initialized(model), epoch, dataset);
  }

  /// The arrays of a model's parameters, by their paths.
  ///
  /// @throws MisuseException if a parameter is not initialised
  public static SequencedMap<String, NDArray> initialized(Model model) {
    SequencedMap<String, NDArray> parameters = new LinkedHashMap<>();
    TrainerParts.parameters(model)
        .forEach((path, parameter) -> {
          if (!parameter.isInitialized()) {
            throw new MisuseException("the parameter '" + path + "' is not initialised");
          }
          parameters.put(path, parameter.getArray());
        });
    return parameters;
  }

  /// The contents of a training.
  ///
  /// @param moment copies of the values that have changed since the step, which are saved instead
  /// @param states the user's own states
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
    TrainerParts parts = TrainerParts.of(trainer);
    SequencedMap<String, NDArray> parameters = values(parts, 0, moment);
    TrainingContents contents = new TrainingContents().with(parameters, epoch, dataset);
    OptimizerState state = OptimizerState.of(trainer);
    SavedOptimizer<NDArray> optimizer = state.values();
    contents.groups.put(OPTIMIZER, optimizer.arrays());
    int devices = parts.devices().size();
    if (devices > 1) {
      SequencedMap<String, NDArray> replicas =
          Replicas.named(devices, i -> values(parts, i, moment), state::values);
      SequencedMap<String, NDArray> first =
          Replicas.named(devices, _ -> parameters, _ -> optimizer.arrays());
      replicas
          .entrySet()
          .removeIf(each ->
              Replicas.sameValues(
                  Objects.requireNonNull(first.get(each.getKey())), each.getValue()));
      contents.putReplicas(replicas);
      contents.state.put(SavedState.DEVICES, Integer.toString(devices));
      contents.state.put(
          SavedState.OPTIMIZER_DEVICES, Integer.toString(parts.updatedDevices().size()));
    }
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

  private static SequencedMap<String, NDArray> values(
      TrainerParts parts, int device, Optional<TrainingMoment> moment) {
    SequencedMap<String, NDArray> values = parts.values(device);
    moment.ifPresent(earlier -> values.putAll(earlier.arrays().get(device)));
    return values;
  }

  private void putReplicas(SequencedMap<String, NDArray> replicas) {
    if (!replicas.isEmpty()) {
      groups.put(Replicas.GROUP, replicas);
    }
  }

  /// Contents as large as a checkpoint after a step can be, for computing sizes. They have all
  /// arrays once more for each device but the first, since all of these may differ from the first
  /// device's arrays.
  ///
  /// @throws MisuseException as [#of]
  public static TrainingContents expected(Model model, Trainer trainer) {
    requireOf(model, trainer);
    SequencedMap<String, NDArray> parameters = TrainerParts.of(trainer).values();
    TrainingContents contents = new TrainingContents().with(parameters, 0, Optional.empty());
    SequencedMap<String, NDArray> states = OptimizerState.of(trainer).expected();
    contents.groups.put(OPTIMIZER, states);
    contents.putReplicas(Replicas.named(trainer.getDevices().length, _ -> parameters, _ -> states));
    return contents;
  }

  private TrainingContents with(
      SequencedMap<String, NDArray> parameters, long epoch, Optional<String> dataset) {
    groups.put(MODEL, parameters);
    state.put(SavedState.EPOCH, Long.toString(epoch));
    dataset.ifPresent(text -> state.put(SavedState.DATASET, text));
    return this;
  }

  /// The name of a parameter that has a value which is NaN or infinite; empty if none has.
  public Optional<String> parameterNotFinite() {
    return Finite.firstWithout(groups.getOrDefault(MODEL, new LinkedHashMap<>()));
  }

  /// @throws MisuseException if the trainer trains another model
  public static void requireOf(Model model, Trainer trainer) {
    if (!trainer.getModel().getBlock().equals(model.getBlock())) {
      throw new MisuseException("the trainer is not of this model");
    }
  }
}
