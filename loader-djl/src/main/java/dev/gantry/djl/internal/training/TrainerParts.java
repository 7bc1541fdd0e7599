package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.training.LocalParameterServer;
import ai.djl.training.ParameterServer;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.guard.ArrayKind;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.SequencedMap;
import java.util.Set;

/// What DJL's trainer works with and does not show: the parameters as they are on each device, and
/// the optimizer.
///
/// @param trainer whose parts these are
/// @param store where the arrays of a parameter are, one for each device
/// @param optimizer as the training's configuration gave it
/// @param parameters by their path in the block; a parameter with several paths under its first
record TrainerParts(
    Trainer trainer,
    ParameterStore store,
    Optimizer optimizer,
    SequencedMap<String, Parameter> parameters) {
  private static final PrivateField<ParameterStore> STORE =
      PrivateField.of(Trainer.class, "parameterStore", "ai.djl.training.ParameterStore");
  private static final PrivateField<ParameterServer> SERVER =
      PrivateField.of(ParameterStore.class, "parameterServer", "ai.djl.training.ParameterServer");
  private static final PrivateField<Optimizer> OPTIMIZER =
      PrivateField.of(
          LocalParameterServer.class, "optimizer", "ai.djl.training.optimizer.Optimizer");

  /// @throws MisuseException if the engine has a parameter server of its own, two parameters have
  ///     one path, or this version of DJL keeps these parts elsewhere
  static TrainerParts of(Trainer trainer) {
    PrivateField.requireAll(List.of(STORE, SERVER, OPTIMIZER));
    ParameterStore store = STORE.get(trainer);
    ParameterServer server = SERVER.get(store);
    if (!(server instanceof LocalParameterServer)) {
      throw new MisuseException(
          "the optimizer behind a " + server.getClass().getName() + " cannot be reached");
    }
    return new TrainerParts(
        trainer, store, OPTIMIZER.get(server), parameters(trainer.getModel().getBlock()));
  }

  /// The parameter's array on each device that the trainer uses.
  ///
  /// @throws MisuseException if the parameter is not initialised
  List<NDArray> arrays(String path) {
    Parameter parameter = initialized(path);
    return devices().stream().map(device -> store.getValue(parameter, device, true)).toList();
  }

  /// As [#arrays], and the model's own array, which may be none of them.
  Set<NDArray> allArrays(String path) {
    // By identity: DJL's arrays are equal where their values are.
    Set<NDArray> arrays = Collections.newSetFromMap(new IdentityHashMap<>());
    arrays.addAll(arrays(path));
    arrays.add(initialized(path).getArray());
    return arrays;
  }

  private Parameter initialized(String path) {
    Parameter parameter = parameters.get(path);
    if (parameter == null || !parameter.isInitialized()) {
      throw new MisuseException(
          "the parameter '" + path + "' is not initialised: initialise the trainer first");
    }
    return parameter;
  }

  /// Checks that an array of this kind could be the parameter's.
  ///
  /// @param subject what it is, for the message
  /// @throws MisuseException if it is not of the parameter's shape and type
  void requireLike(String path, String subject, ArrayKind kind) {
    ArrayKind own = ArrayKind.of(arrays(path).getFirst());
    if (!kind.equals(own)) {
      throw new MisuseException(
          subject + " is " + kind + ", and the parameter '" + path + "' is " + own);
    }
  }

  List<Device> devices() {
    return List.of(trainer.getDevices());
  }

  /// The parameters of a block by their path; one with several paths under its first.
  ///
  /// @throws MisuseException if two parameters have one path
  static SequencedMap<String, Parameter> parameters(Block block) {
    SequencedMap<String, Parameter> byPath = new LinkedHashMap<>();
    Set<Parameter> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Pair<String, Parameter> pair : block.getParameters()) {
      if (seen.add(pair.getValue()) && byPath.put(pair.getKey(), pair.getValue()) != null) {
        throw new MisuseException("two parameters have the path '" + pair.getKey() + "'");
      }
    }
    return Collections.unmodifiableSequencedMap(byPath);
  }
}
