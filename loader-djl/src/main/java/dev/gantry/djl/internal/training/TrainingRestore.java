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
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.djl.internal.weights.ParameterLoad;
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
import java.util.function.Supplier;

/// One restore of a checkpoint. Before the first parameter changes, names, shapes and types are
/// compared with those of the model and the optimizer, and checksums with those of the manifest if
/// `verify` is set.
///
/// @param verify whether to compare the checksums of all tensors
/// @param userStates the user's states, which are restored with a trainer
public record TrainingRestore(
    GantrySession session,
    CheckpointFolder checkpoint,
    boolean verify,
    UserStates userStates,
    LoadSettings settings) {
  /// The result of a restore.
  ///
  /// @param skipped by path, the reason why a parameter kept its value
  /// @param unused the saved parameters that the model lacks
  public record Restored(
      CheckpointFolder checkpoint,
      long epoch,
      Optional<String> datasetState,
      SequencedMap<String, String> skipped,
      List<String> unused) {}

  /// @throws MalformedFileException if the checkpoint is damaged; nothing has changed then
  /// @throws MisuseException if the checkpoint is of another model or optimizer; nothing has
  ///     changed then
  public Restored into(RestoreTarget target) {
    // The state is read before anything changes, so that a damaged manifest is refused here.
    SavedState state = new SavedState(checkpoint);
    long epoch = state.epoch();
    Optional<String> dataset = state.dataset();
    Trainer trainer = target.trainer();
    if (trainer != null) {
      TrainingContents.requireOf(target.model(), trainer);
      PyTorch.requireOpen("the trainer", trainer.getManager());
      requireTraining(state, target);
    }
    RestoreTarget.Chosen chosen = target.choose(checkpoint.open(TrainingContents.MODEL).tensors());
    if (trainer == null) {
      intoModel(target.model(), chosen);
    } else {
      intoTraining(trainer, state, chosen, target.optimizer());
    }
    return new Restored(checkpoint, epoch, dataset, chosen.skipped(), chosen.unused());
  }

  private void intoModel(Model model, RestoreTarget.Chosen chosen) {
    ParameterList parameters = new ParameterList();
    chosen.parameters().forEach(parameters::add);
    Set<String> strange = new TreeSet<>(chosen.values().keySet());
    strange.removeAll(parameters.keys());
    if (!strange.isEmpty()) {
      throw new MisuseException(
          checkpoint.folder() + " is of another model: this model has no parameters " + strange);
    }
    verify(chosen.values());
    var _ =
        new ParameterLoad(session, model.getNDManager(), settings, chosen.values())
            .into(parameters, NameRules.SAME);
  }

  private void requireTraining(SavedState state, RestoreTarget target) {
    if (target.optimizer() && !state.hasTraining()) {
      throw new MisuseException(
          checkpoint.folder()
              + " was saved without a trainer: restore the model alone, or without the optimizer");
    }
  }

  private void intoTraining(
      Trainer trainer, SavedState state, RestoreTarget.Chosen chosen, boolean withOptimizer) {
    RandomStates random = RandomStates.of(state, trainer);
    SequencedMap<String, StoredTensor> values = chosen.values();
    TrainerParts all = TrainerParts.of(trainer);
    TrainerParts parameters = all.only(chosen.parameters());
    SequencedMap<String, StoredTensor> states = new LinkedHashMap<>();
    Supplier<StateReplacement> replacing = () -> new StateReplacement(parameters);
    parameters.check(kinds(values));
    if (withOptimizer) {
      checkpoint
          .open(TrainingContents.OPTIMIZER)
          .tensors()
          .forEach((name, tensor) -> {
            if (!chosen.isLeft(name.substring(name.indexOf('/') + 1))) {
              states.put(name, tensor);
            }
          });
      OptimizerState optimizer = OptimizerState.of(parameters);
      SavedOptimizer<ArrayKind> saved =
          optimizer.counted(
              state.optimizer(kinds(states)).without(chosen::isLeft), state.countingDevices());
      optimizer.check(saved);
      replacing = () -> optimizer.replace(saved);
    }
    int devices = parameters.devices().size();
    boolean whole = withOptimizer && chosen.isWhole();
    SequencedMap<String, StoredTensor> replicas =
        replicas(
            devices,
            state.devices(),
            Replicas.named(devices, _ -> kinds(values), _ -> kinds(states)),
            whole);
    verify(values);
    verify(states);
    verify(replicas);
    try (StateReplacement replacement = replacing.get();
        NDManager temporary = trainer.getManager().newSubManager()) {
      TensorLoad load = new TensorLoad(session, temporary, settings);
      load.eachPart(List.copyOf(values.values()), new ArrayTargets(parameters.targets()));
      all.clearGradients();
      load.eachPart(List.copyOf(states.values()), new ArrayTargets(replacement.targets()));
      Map<String, List<NDArray>> others = new HashMap<>();
      Replicas.named(devices, parameters::values, replacement::targets)
          .forEach((name, array) -> others.put(name, List.of(array)));
      load.eachPart(List.copyOf(replicas.values()), new ArrayTargets(others));
      replacement.apply();
    }
    userStates.restore(state.user(), checkpoint.folder());
    // The generators are restored last, because the user's functions above may draw numbers.
    random.restore();
  }

  /// The saved arrays of other devices that differed from those of the first device. Empty if the
  /// checkpoint was saved on another number of devices; all devices then get the first device's
  /// arrays.
  ///
  /// @param saved the number of devices on which the checkpoint was saved
  /// @param kinds the dtype and shape that each replica must have
  /// @param whole whether the whole checkpoint is restored; if not, replicas of values that are
  ///     not restored are left out
  private SequencedMap<String, StoredTensor> replicas(
      int devices, int saved, Map<String, ArrayKind> kinds, boolean whole) {
    if (devices != saved || !checkpoint.has(Replicas.GROUP)) {
      return new LinkedHashMap<>();
    }
    SequencedMap<String, StoredTensor> replicas =
        new LinkedHashMap<>(checkpoint.open(Replicas.GROUP).tensors());
    if (!whole) {
      replicas.keySet().retainAll(kinds.keySet());
    }
    kinds(replicas)
        .forEach((name, kind) -> {
          ArrayKind first = kinds.get(name);
          if (!kind.equals(first)) {
            throw new MalformedFileException(
                StoreFolder.manifest(checkpoint.folder()),
                0,
                "invalid-replica",
                first == null
                    ? "'" + name + "' is a replica on some of " + devices + " devices only"
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
