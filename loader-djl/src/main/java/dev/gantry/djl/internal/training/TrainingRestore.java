// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.ParameterList;
import ai.djl.training.Trainer;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.djl.internal.weights.ParameterLoad;
import dev.gantry.djl.internal.weights.Scales;
import dev.gantry.djl.internal.weights.TensorLoad;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.StoreFolder;
import dev.gantry.formats.spi.StoredTensor;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// One restore of a checkpoint. It compares names, shapes and types with those of the model and the
/// optimizer, and checksums if asked, before the first parameter changes.
///
/// @param verify whether to compare the checksums of all tensors
/// @param userStates restored with a trainer
public record TrainingRestore(
    GantrySession session,
    CheckpointFolder checkpoint,
    boolean verify,
    UserStates userStates,
    LoadSettings settings) {
  /// What was restored.
  public record Restored(CheckpointFolder checkpoint, long epoch, Optional<String> datasetState) {}

  /// @throws MalformedFileException if the checkpoint is damaged; nothing has changed then
  /// @throws MisuseException if it is of another model or optimizer; nothing has changed then
  public Restored into(Model model, @Nullable Trainer trainer) {
    // Read before anything changes: a damaged manifest is refused here.
    SavedState state = new SavedState(checkpoint);
    Restored restored = new Restored(checkpoint, state.epoch(), state.dataset());
    if (trainer == null) {
      intoModel(model);
    } else {
      TrainingContents.requireOf(model, trainer);
      intoTraining(trainer, state);
    }
    return restored;
  }

  private void intoModel(Model model) {
    SequencedMap<String, StoredTensor> tensors = checkpoint.open(TrainingContents.MODEL).tensors();
    ParameterList parameters = new ParameterList();
    TrainerParts.parameters(model.getBlock()).forEach(parameters::add);
    Set<String> strange = new TreeSet<>(tensors.keySet());
    strange.removeAll(parameters.keys());
    if (!strange.isEmpty()) {
      throw new MisuseException(
          checkpoint.folder() + " is of another model: this model has no parameters " + strange);
    }
    verify(tensors);
    var _ =
        new ParameterLoad(session, model.getNDManager(), settings, tensors, Scales.NONE)
            .into(parameters, NameRules.SAME);
  }

  private void intoTraining(Trainer trainer, SavedState state) {
    if (!state.hasTraining()) {
      throw new MisuseException(
          checkpoint.folder() + " was saved without a trainer: restore the model alone");
    }
    RandomStates random = RandomStates.of(state, trainer);
    SequencedMap<String, StoredTensor> values = checkpoint.open(TrainingContents.MODEL).tensors();
    SequencedMap<String, StoredTensor> states =
        checkpoint.open(TrainingContents.OPTIMIZER).tensors();
    TrainerParts parameters = TrainerParts.of(trainer);
    OptimizerState optimizer = OptimizerState.of(trainer);
    SavedOptimizer<ArrayKind> saved =
        optimizer.counted(state.optimizer(kinds(states)), state.countingDevices());
    parameters.check(kinds(values));
    optimizer.check(saved);
    int devices = parameters.devices().size();
    SequencedMap<String, StoredTensor> replicas =
        replicas(
            devices,
            state.devices(),
            Replicas.named(devices, _ -> kinds(values), _ -> kinds(states)));
    verify(values);
    verify(states);
    verify(replicas);
    try (StateReplacement replacement = optimizer.replace(saved);
        NDManager temporary = trainer.getManager().newSubManager()) {
      TensorLoad load = new TensorLoad(session, temporary, settings, Scales.NONE);
      load.eachPart(List.copyOf(values.values()), new ArrayTargets(parameters.targets()));
      parameters.clearGradients();
      load.eachPart(List.copyOf(states.values()), new ArrayTargets(replacement.targets()));
      Map<String, List<NDArray>> others = new HashMap<>();
      Replicas.named(devices, parameters::values, replacement::targets)
          .forEach((name, array) -> others.put(name, List.of(array)));
      load.eachPart(List.copyOf(replicas.values()), new ArrayTargets(others));
      replacement.apply();
    }
    userStates.restore(state.user(), checkpoint.folder());
    // Restores the generators last: the user's functions above may draw numbers.
    random.restore();
  }

  /// The arrays that devices but the first had different from it. Empty if the checkpoint was saved on
  /// another number of devices: then all devices get the first one's.
  ///
  /// @param saved on how many devices it was saved
  /// @param kinds what each replica must be
  private SequencedMap<String, StoredTensor> replicas(
      int devices, int saved, Map<String, ArrayKind> kinds) {
    if (devices != saved || !checkpoint.has(Replicas.GROUP)) {
      return new LinkedHashMap<>();
    }
    SequencedMap<String, StoredTensor> replicas = checkpoint.open(Replicas.GROUP).tensors();
    kinds(replicas)
        .forEach((name, kind) -> {
          ArrayKind first = kinds.get(name);
          if (!kind.equals(first)) {
            throw new MalformedFileException(
                StoreFolder.manifest(checkpoint.folder()),
                0,
                "invalid-replica",
                first == null
                    ? "'" + name + "' is no replica on one of " + devices + " devices"
                    : "'" + name + "' is " + kind + ", and the first device's is " + first);
          }
        });
    return replicas;
  }

  private static SequencedMap<String, ArrayKind> kinds(Map<String, StoredTensor> tensors) {
    SequencedMap<String, ArrayKind> kinds = new LinkedHashMap<>();
    tensors.forEach((name, tensor) ->
        kinds.put(name, new ArrayKind(Optional.of(tensor.dtype()), tensor.shape())));
    return kinds;
  }

  private void verify(Map<String, StoredTensor> tensors) {
    if (verify) {
      int[] sums = session.checksums(tensors.values().stream().map(StoredTensor::extent).toList());
      int next = 0;
      for (StoredTensor tensor : tensors.values()) {
        checkpoint.check(tensor, sums[next++]);
      }
    }
  }
}
