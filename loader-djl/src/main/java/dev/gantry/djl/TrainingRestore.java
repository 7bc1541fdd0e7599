package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.ParameterList;
import ai.djl.training.Trainer;
import dev.gantry.core.Gantry;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.ArrayMemory;
import dev.gantry.djl.internal.OptimizerState;
import dev.gantry.djl.internal.OptimizerValues;
import dev.gantry.djl.internal.TrainingParameters;
import dev.gantry.formats.checkpoint.Manifest;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/// One return to a checkpoint. All is read, and checked if that is wanted, before the first
/// parameter changes.
final class TrainingRestore {
  private final Gantry session;
  private final StoredCheckpoint checkpoint;
  private final boolean verify;
  private final UserStates userStates;
  private final SavedState state;

  /// @param verify whether to compare the checksums of all tensors
  /// @param userStates which are restored with a trainer
  TrainingRestore(
      Gantry session, StoredCheckpoint checkpoint, boolean verify, UserStates userStates) {
    this.session = session;
    this.checkpoint = checkpoint;
    this.verify = verify;
    this.userStates = userStates;
    this.state = new SavedState(checkpoint);
  }

  /// @throws MalformedFileException if the checkpoint is damaged; nothing has changed then
  /// @throws MisuseException if it is of another model or optimizer; nothing has changed then
  RestoredTraining into(Model model, @Nullable Trainer trainer) {
    Manifest manifest = checkpoint.manifest();
    RestoredTraining restored =
        new RestoredTraining(
            checkpoint,
            manifest.step(),
            state.epoch(),
            state.dataset(),
            manifest.metrics(),
            manifest.metadata());
    if (trainer == null) {
      intoModel(model);
    } else {
      TrainingCapture.requireOf(model, trainer);
      intoTraining(trainer);
    }
    return restored;
  }

  private void intoModel(Model model) {
    SequencedMap<String, TensorInfo> tensors = checkpoint.open(TrainingCapture.MODEL).tensors();
    ParameterList parameters = new ParameterList();
    TrainingParameters.byPath(model.getBlock()).forEach(parameters::add);
    Set<String> strange = new TreeSet<>(tensors.keySet());
    strange.removeAll(parameters.keys());
    if (!strange.isEmpty()) {
      throw new MisuseException(
          checkpoint.folder() + " is of another model: this one has no parameters " + strange);
    }
    new ParameterLoad(session, model.getNDManager(), LoadOptions.defaults())
        .load(tensors, parameters, ParameterNames.same(), loaded -> check(tensors, loaded));
  }

  private void intoTraining(Trainer trainer) {
    if (!state.hasTraining()) {
      throw new MisuseException(
          checkpoint.folder() + " was saved without a trainer: restore the model alone");
    }
    RandomRestore random = RandomRestore.of(state, trainer);
    try (NDManager temporary = trainer.getManager().newSubManager()) {
      SequencedMap<String, NDArray> parameters = load(TrainingCapture.MODEL, temporary);
      OptimizerValues optimizer =
          new OptimizerValues(
              state.optimizerKind(),
              load(TrainingCapture.OPTIMIZER, temporary),
              state.updateCounts(),
              state.optimizerUpdates());
      OptimizerState optimizerState = OptimizerState.of(trainer);
      optimizerState.check(optimizer);
      TrainingParameters.of(trainer).restore(parameters);
      optimizerState.restore(optimizer);
    }
    userStates.restore(state.user(), checkpoint.folder());
    // Last: the user's own may draw numbers.
    random.apply();
  }

  private SequencedMap<String, NDArray> load(String group, NDManager manager) {
    SequencedMap<String, TensorInfo> tensors = checkpoint.open(group).tensors();
    NDList loaded = new TensorLoad(session, manager, LoadOptions.defaults()).load(tensors);
    check(tensors, loaded);
    SequencedMap<String, NDArray> byName = new LinkedHashMap<>();
    loaded.forEach(array -> byName.put(array.getName(), array));
    return byName;
  }

  private void check(Map<String, TensorInfo> tensors, NDList loaded) {
    if (!verify) {
      return;
    }
    for (NDArray array : loaded) {
      TensorInfo info = tensors.get(array.getName());
      if (info == null) {
        throw new IllegalStateException("not asked for: " + array.getName());
      }
      try (ArrayMemory memory = ArrayMemory.of(array)) {
        checkpoint.check(info, session.checksum(TrainingCapture.source(memory)));
      }
    }
  }
}
