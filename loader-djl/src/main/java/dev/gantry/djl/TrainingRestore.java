package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.engine.Engine;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.ndarray.NDManager;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.training.Trainer;
import ai.djl.util.Pair;
import dev.gantry.core.Gantry;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.ArrayMemory;
import dev.gantry.djl.internal.OptimizerState;
import dev.gantry.djl.internal.OptimizerValues;
import dev.gantry.djl.internal.RandomSource;
import dev.gantry.djl.internal.TrainingParameters;
import dev.gantry.formats.checkpoint.Manifest;
import dev.gantry.formats.checkpoint.StoredCheckpoint;
import dev.gantry.formats.safetensors.TensorInfo;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
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

  /// @param verify whether to compare the checksums of all tensors
  TrainingRestore(Gantry session, StoredCheckpoint checkpoint, boolean verify) {
    this.session = session;
    this.checkpoint = checkpoint;
    this.verify = verify;
  }

  /// @throws MalformedFileException if the checkpoint is damaged
  /// @throws MisuseException if it is of another model or optimizer; nothing has changed then
  RestoredTraining into(Model model, @Nullable Trainer trainer) {
    if (trainer == null) {
      intoModel(model);
    } else {
      intoTraining(trainer);
    }
    Manifest manifest = checkpoint.manifest();
    return new RestoredTraining(
        checkpoint,
        manifest.step(),
        number(StateKeys.EPOCH),
        Optional.ofNullable(manifest.state().get(StateKeys.DATASET)),
        manifest.metrics(),
        manifest.metadata());
  }

  private void intoModel(Model model) {
    SequencedMap<String, TensorInfo> tensors = checkpoint.open(TrainingCapture.MODEL).tensors();
    ParameterList parameters = new ParameterList();
    Set<Parameter> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Pair<String, Parameter> pair : model.getBlock().getParameters()) {
      if (seen.add(pair.getValue())) {
        parameters.add(pair.getKey(), pair.getValue());
      }
    }
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
    if (!checkpoint.manifest().state().containsKey(StateKeys.OPTIMIZER_KIND)) {
      throw new MisuseException(
          checkpoint.folder() + " was saved without a trainer: restore the model alone");
    }
    try (NDManager temporary = trainer.getManager().newSubManager()) {
      SequencedMap<String, NDArray> parameters = load(TrainingCapture.MODEL, temporary);
      OptimizerValues optimizer =
          new OptimizerValues(
              text(StateKeys.OPTIMIZER_KIND),
              load(TrainingCapture.OPTIMIZER, temporary),
              updateCounts(),
              Math.toIntExact(number(StateKeys.OPTIMIZER_UPDATES)));
      OptimizerState optimizerState = OptimizerState.of(trainer);
      optimizerState.check(optimizer);
      TrainingParameters.of(trainer).restore(parameters);
      optimizerState.restore(optimizer);
    }
    restoreRandom(trainer);
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

  private SequencedMap<String, Integer> updateCounts() {
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    for (String key : checkpoint.manifest().state().keySet()) {
      if (key.startsWith(StateKeys.OPTIMIZER_COUNT)) {
        counts.put(key.substring(StateKeys.OPTIMIZER_COUNT.length()), Math.toIntExact(number(key)));
      }
    }
    return counts;
  }

  /// The seed first: to set it resets libtorch's generators.
  private void restoreRandom(Trainer trainer) {
    Map<String, String> state = checkpoint.manifest().state();
    if (state.containsKey(StateKeys.SEED)) {
      Engine.getEngine(trainer.getManager().getEngine().getEngineName())
          .setRandomSeed(Math.toIntExact(number(StateKeys.SEED)));
    }
    for (RandomSource source : RandomSource.of(trainer)) {
      String saved = state.get(StateKeys.RANDOM + source.name());
      if (saved != null) {
        source.restore(saved);
      }
    }
  }

  private String text(String key) {
    String value = checkpoint.manifest().state().get(key);
    if (value == null) {
      throw malformed("missing-state", "there is no '" + key + "'");
    }
    return value;
  }

  private long number(String key) {
    try {
      return Long.parseLong(text(key));
    } catch (NumberFormatException _) {
      throw malformed("invalid-state", "'" + key + "' is no number: '" + text(key) + "'");
    }
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(
        checkpoint.folder().resolve(Manifest.FILE_NAME), 0, kind, detail);
  }
}
