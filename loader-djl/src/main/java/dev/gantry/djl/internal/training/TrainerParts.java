// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.LocalParameterServer;
import ai.djl.training.ParameterServer;
import ai.djl.training.ParameterStore;
import ai.djl.training.Trainer;
import ai.djl.training.optimizer.Optimizer;
import ai.djl.util.Pair;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.Collections;
import java.util.HashMap;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.Set;

/// Private parts of DJL's trainer: its optimizer, and the parameters on each of its devices. A
/// trainer that uses another device than the model, or several devices, works on copies of its
/// own; the model's arrays are out of date until the trainer is closed.
///
/// Call its methods on the thread that steps the trainer.
///
/// @param optimizer the optimizer of the training's configuration
/// @param updatesOnce whether each step updates only the first device's parameters
/// @param parameters the parameters of [#parameters(Block)] of the trainer's model, or some of
///     them
public record TrainerParts(
    Trainer trainer,
    ParameterStore store,
    Optimizer optimizer,
    boolean updatesOnce,
    SequencedMap<String, Parameter> parameters) {
  private static final String CASTS =
      "; only a restore of the model alone, without optTrainer, casts parameters";

  private static final PrivateField<ParameterStore> STORE =
      PrivateField.of(Trainer.class, "parameterStore", "ai.djl.training.ParameterStore");
  private static final PrivateField<ParameterServer> SERVER =
      PrivateField.of(ParameterStore.class, "parameterServer", "ai.djl.training.ParameterServer");
  private static final PrivateField<Optimizer> OPTIMIZER =
      PrivateField.of(
          LocalParameterServer.class, "optimizer", "ai.djl.training.optimizer.Optimizer");

  /// @throws MisuseException if the engine has a parameter server of its own, two parameters have
  ///     the same path, or this version of DJL keeps these parts in other fields
  public static TrainerParts of(Trainer trainer) {
    PrivateField.requireAll(List.of(STORE, SERVER, OPTIMIZER));
    ParameterStore store = STORE.get(trainer);
    ParameterServer server = SERVER.get(store);
    if (server instanceof UpdateFence fence) {
      server = fence.real();
    }
    Optimizer optimizer =
        switch (server) {
          case OneUpdate one -> one.optimizer();
          case LocalParameterServer _ -> OPTIMIZER.get(server);
          default ->
              throw new MisuseException(
                  "the optimizer behind a " + server.getClass().getName() + " cannot be reached");
        };
    return new TrainerParts(
        trainer, store, optimizer, server instanceof OneUpdate, parameters(trainer.getModel()));
  }

  /// All parameters of a model's block.
  ///
  /// @throws MisuseException if the model has no block, or two parameters have the same path
  public static SequencedMap<String, Parameter> parameters(Model model) {
    return parameters(MisuseException.requireGiven("setBlock of the model", model.getBlock()));
  }

  /// All parameters of a block, initialised or not, by their path, in the block's order. A
  /// parameter with several paths has one entry, under the first.
  ///
  /// @throws MisuseException if two parameters have the same path, or the array of one is closed
  public static SequencedMap<String, Parameter> parameters(Block block) {
    SequencedMap<String, Parameter> byPath = new LinkedHashMap<>();
    Set<Parameter> seen = Collections.newSetFromMap(new IdentityHashMap<>());
    for (Pair<String, Parameter> pair : block.getParameters()) {
      TorchArrays.requireOpen(pair.getKey(), pair.getValue());
      if (seen.add(pair.getValue()) && byPath.put(pair.getKey(), pair.getValue()) != null) {
        throw new MisuseException("two parameters have the path '" + pair.getKey() + "'");
      }
    }
    return Collections.unmodifiableSequencedMap(byPath);
  }

  /// The same trainer with some of its parameters.
  TrainerParts only(SequencedMap<String, Parameter> chosen) {
    return new TrainerParts(
        trainer, store, optimizer, updatesOnce, Collections.unmodifiableSequencedMap(chosen));
  }

  /// The fence before the trainer's updates. The first call installs it for good.
  public UpdateFence fence() {
    ParameterServer server = SERVER.get(store);
    if (server instanceof UpdateFence fence) {
      return fence;
    }
    UpdateFence fence = new UpdateFence(server);
    SERVER.set(store, fence);
    return fence;
  }

  /// Makes each step update only the first device's parameters and copy them to the other devices.
  /// Calling twice does nothing.
  public void updateOnce() {
    if (updatesOnce) {
      return;
    }
    OneUpdate once = new OneUpdate(optimizer, trainer.getManager());
    if (SERVER.get(store) instanceof UpdateFence fence) {
      fence.setReal(once);
    } else {
      SERVER.set(store, once);
    }
  }

  /// The devices on which the optimizer updates parameters, keeps states and counts updates.
  List<Device> updatedDevices() {
    return updatesOnce ? devices().subList(0, 1) : devices();
  }

  /// How many parameters a step updates.
  public int updatedParameters() {
    return (int) parameters.values().stream().filter(Parameter::requiresGradient).count();
  }

  List<Device> devices() {
    return List.of(trainer.getDevices());
  }

  /// The array of each parameter by its path, as in [#parameters]. They are the arrays that the
  /// training works on, so the next step changes them. With several devices, they are the arrays
  /// of the first device.
  ///
  /// @throws MisuseException if a parameter is not initialised
  public SequencedMap<String, NDArray> values() {
    return values(0);
  }

  /// Returns the arrays of [#values()] on another device.
  ///
  /// @param device the device's index in [#devices]
  SequencedMap<String, NDArray> values(int device) {
    SequencedMap<String, NDArray> values = new LinkedHashMap<>();
    for (String path : parameters.keySet()) {
      values.put(path, arrays(path).get(device));
    }
    return values;
  }

  /// Checks that saved values fit the parameters.
  ///
  /// @param saved the dtype and shape of each value, by path
  /// @throws MisuseException if a parameter has no saved value, a value has no parameter, a value
  ///     does not fit its parameter, or a parameter is not initialised
  public void check(Map<String, ArrayKind> saved) {
    Names.requireSame(
        "the saved parameters do not fit the model's",
        "the model",
        new LinkedHashSet<>(saved.keySet()),
        parameters.sequencedKeySet());
    saved.forEach((path, kind) ->
        requireLike(
            path,
            "the saved parameter '" + path + "'",
            kind,
            "; optSkipMismatched(true) of a RestoreRequest leaves it as it is"));
  }

  /// Checks that an array of this kind fits the parameter.
  ///
  /// @param subject the name of the array, for the message
  /// @param remedy advice for an array of another shape, for the end of the message
  /// @throws MisuseException if the array does not have the parameter's shape and type
  void requireLike(String path, String subject, ArrayKind kind, String remedy) {
    ArrayKind own = ArrayKind.of(arrays(path).getFirst());
    if (!kind.equals(own)) {
      throw new MisuseException(
          subject
              + " is "
              + kind
              + ", and the parameter '"
              + path
              + "' is "
              + own
              + (kind.dtype().equals(own.dtype()) ? remedy : CASTS));
    }
  }

  /// The arrays of each parameter, to be changed: the arrays on all devices of the trainer, and
  /// the model's array.
  ///
  /// @throws MisuseException if a parameter is not initialised, or an array cannot be changed
  Map<String, Set<NDArray>> targets() {
    Map<String, Set<NDArray>> all = new HashMap<>();
    parameters.keySet().forEach(path -> all.put(path, targets(path)));
    all.values().forEach(arrays -> arrays.forEach(TorchArrays::requireWritable));
    return all;
  }

  /// Clears gradients that wait for a step, because they were computed with values that were
  /// replaced.
  void clearGradients() {
    parameters.keySet().stream()
        .flatMap(path -> targets(path).stream())
        .map(TorchArrays::torchArray)
        .forEach(TrainerParts::clearGradient);
  }

  private Set<NDArray> targets(String path) {
    // The set compares by identity, because DJL's arrays are equal if their values are.
    Set<NDArray> targets = Collections.newSetFromMap(new IdentityHashMap<>());
    targets.addAll(arrays(path));
    // The model's own array is added, because it may be on a device that the trainer does not use.
    targets.add(initialized(path).getArray());
    return targets;
  }

  static void clearGradient(PtNDArray array) {
    if (!array.hasGradient()) {
      return;
    }
    try (PtNDArray gradient = JniUtils.getGradient(array)) {
      // The gradient is null before the first backward pass.
      if (gradient != null) {
        JniUtils.zeroGrad(array);
      }
    }
  }

  /// The parameter's array on each device that the trainer uses.
  ///
  /// @throws MisuseException if the parameter is not initialised
  private List<NDArray> arrays(String path) {
    Parameter parameter = initialized(path);
    return devices().stream().map(device -> store.getValue(parameter, device, true)).toList();
  }

  private Parameter initialized(String path) {
    Parameter parameter = parameters.get(path);
    if (parameter == null || !parameter.isInitialized()) {
      throw new MisuseException(
          "the parameter '" + path + "' is not initialised: initialise the trainer first");
    }
    return parameter;
  }
}
