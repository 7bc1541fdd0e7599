// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.DataType;
import ai.djl.ndarray.types.Shape;
import ai.djl.nn.Parameter;
import ai.djl.nn.ParameterList;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.djl.internal.names.NameRules;
import dev.gantry.djl.internal.names.TensorNames;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.weights.LoadSettings;
import dev.gantry.djl.internal.weights.ParameterLoad;
import dev.gantry.formats.spi.StoredTensor;
import dev.gantry.formats.spi.WeightsCatalogue;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.stream.Stream;

/// A training under the names that PyTorch's `get_state_dict` gives a model and its optimizer: `model.NAME` and
/// `optimizer.state.NAME.exp_avg`, where NAME is what rules call a parameter's tensor.
///
/// @param rules the names of the model's tensors
public record TorchTraining(TrainerParts parts, OptimizerState optimizer, NameRules rules) {
  private static final String MODEL = "model.";
  private static final String STATE = "optimizer.state.";
  private static final String STEP = ".step";

  /// PyTorch's names of the states of Adam and AdamW, by DJL's.
  private static final Map<String, String> NAMES =
      Map.of("means", ".exp_avg", "variances", ".exp_avg_sq");

  /// The prefix of a tensor's name in the optimizer's states; each of `ANY_STATE` is the suffix in
  /// one of the states of some optimizers of PyTorch.
  private static final String IN_STATE = "state.";

  private static final List<String> ANY_STATE =
      List.of(".exp_avg", ".momentum_buffer", ".square_avg");

  /// Arrays by the paths of their parameters.
  ///
  /// @param rules the rules for the names of the tensors
  /// @param prefix the beginning of the names in the folder
  /// @param suffix the end of the names in the folder
  public record Group(
      SequencedMap<String, NDArray> arrays, NameRules rules, String prefix, String suffix) {
    public String name(String tensor) {
      return prefix + tensor + suffix;
    }
  }

  /// @throws MisuseException if PyTorch's optimizer of this kind keeps another state
  public static TorchTraining of(Trainer trainer, NameRules rules) {
    TrainerParts parts = TrainerParts.of(trainer);
    OptimizerState optimizer = OptimizerState.of(parts);
    if (!NAMES.keySet().containsAll(optimizer.states())
        || (!optimizer.states().isEmpty() && !optimizer.kind().startsWith("Adam"))) {
      throw new MisuseException(
          "PyTorch does not keep the state of DJL's %s, %s; it keeps that of Adam and AdamW, and none for Sgd without momentum"
              .formatted(optimizer.kind(), optimizer.states()));
    }
    return new TorchTraining(parts, optimizer, rules);
  }

  private static String suffix(String state) {
    return Objects.requireNonNull(NAMES.get(state), state);
  }

  /// The parameters of a model.
  ///
  /// @param arrays by the paths of the parameters
  public static Group model(SequencedMap<String, NDArray> arrays, NameRules rules) {
    return new Group(arrays, rules, MODEL, "");
  }

  /// The optimizer's arrays by DJL's name of the state and the parameter's path. They are the
  /// training's own arrays, so the next step changes them.
  public SequencedMap<String, NDArray> states() {
    return new LinkedHashMap<>(optimizer.valuesOfOne().arrays());
  }

  /// @param states as [#states] names them
  public List<Group> groups(SequencedMap<String, NDArray> states) {
    List<Group> groups = new ArrayList<>();
    for (String state : optimizer.states()) {
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
      for (String path : parts.parameters().keySet()) {
        NDArray array = states.get(state + "/" + path);
        if (array != null) {
          arrays.put(path, array);
        }
      }
      groups.add(new Group(arrays, rules.of(arrays.keySet()), STATE, suffix(state)));
    }
    return groups;
  }

  /// How often each tensor with a state was updated, by the name of this number in the folder;
  /// empty for an optimizer that keeps no state.
  ///
  /// @param states as [#states] names them
  public SequencedMap<String, Integer> steps(SequencedMap<String, NDArray> states) {
    SequencedMap<String, Integer> steps = new LinkedHashMap<>();
    SequencedMap<String, NameRules.Rule> found = rules.matching(parts.parameters().keySet());
    Map<String, Integer> counts = optimizer.valuesOfOne().updateCounts();
    for (String path : parts.parameters().keySet()) {
      if (optimizer.states().stream().anyMatch(state -> states.containsKey(state + "/" + path))) {
        rules
            .tensors(path, found.get(path))
            .forEach(tensor -> steps.put(STATE + tensor + STEP, counts.getOrDefault(path, 0)));
      }
    }
    return steps;
  }

  /// Sets model and optimizer to the values in a folder. All tensors are loaded to the host before
  /// any parameter changes.
  ///
  /// @param folder the folder, for messages
  /// @throws MisuseException if the tensors do not fit the parameters by the rules; nothing has changed then
  public void restore(GantrySession session, Path folder, WeightsCatalogue saved) {
    Found found = Found.of(folder, saved);
    requireKnown(folder, found);
    NDManager trainers = parts.trainer().getManager();
    try (NDManager host = trainers.newSubManager(Device.cpu())) {
      SequencedMap<String, NDArray> model =
          load(session, host, found.model(), shapes(parts.parameters().keySet()), rules);
      SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
      for (String state : optimizer.states()) {
        SequencedMap<String, StoredTensor> tensors = found.ending(suffix(state));
        Collection<String> paths = updated(tensors);
        load(session, host, tensors, shapes(paths), rules.of(paths))
            .forEach((path, array) -> arrays.put(state + "/" + path, array));
      }
      SavedOptimizer<ArrayKind> state = saved(arrays, steps(session, host, found));
      try (StateReplacement replacement = optimizer.replace(optimizer.counted(state, 1))) {
        copy(model, parts.targets());
        parts.clearGradients();
        copy(arrays, replacement.targets());
        replacement.apply();
      }
    }
  }

  /// Refuses states that this optimizer does not keep: without them, the training would not go on
  /// as it was.
  private void requireKnown(Path folder, Found found) {
    List<String> known =
        Stream.concat(optimizer.states().stream().map(TorchTraining::suffix), Stream.of(STEP))
            .toList();
    for (StoredTensor tensor : found.states().values()) {
      if (known.stream().noneMatch(tensor.name()::endsWith)) {
        throw new MisuseException(
            "%s must have the state of an optimizer like the trainer's %s, in tensors whose names end with %s (has '%s')"
                .formatted(folder, optimizer.kind(), String.join(" or ", known), tensor.name()));
      }
    }
  }

  private static void copy(
      Map<String, NDArray> arrays, Map<String, ? extends Collection<NDArray>> targets) {
    arrays.forEach((name, array) ->
        Objects.requireNonNull(targets.get(name), name)
            .forEach(target -> TorchArrays.copy(array, target, 0)));
  }

  private SavedOptimizer<ArrayKind> saved(
      Map<String, NDArray> arrays, SequencedMap<String, Integer> counts) {
    SequencedMap<String, ArrayKind> kinds = new LinkedHashMap<>();
    arrays.forEach((name, array) -> kinds.put(name, ArrayKind.of(array)));
    int updates = counts.values().stream().mapToInt(Integer::intValue).max().orElse(0);
    return new SavedOptimizer<>(optimizer.kind(), kinds, counts, updates);
  }

  /// The paths of the parameters for which the optimizer has tensors.
  private List<String> updated(SequencedMap<String, StoredTensor> tensors) {
    TensorNames names = new TensorNames(tensors.keySet(), rules);
    SequencedMap<String, NameRules.Rule> matching = rules.matching(parts.parameters().keySet());
    return parts.parameters().keySet().stream()
        .filter(path ->
            rules.tensors(path, matching.get(path)).stream()
                .anyMatch(tensor -> names.find(tensor).isPresent()))
        .toList();
  }

  private SequencedMap<String, Integer> steps(GantrySession session, NDManager host, Found found) {
    SequencedMap<String, Integer> steps = new LinkedHashMap<>();
    SequencedMap<String, StoredTensor> tensors = found.ending(STEP);
    SequencedMap<String, Shape> shapes = new LinkedHashMap<>();
    tensors.keySet().forEach(name -> shapes.put(name, new Shape()));
    load(session, host, tensors, shapes, NameRules.SAME)
        .forEach((name, step) ->
            steps.put(name, (int) step.toType(DataType.FLOAT32, false).toFloatArray()[0]));
    TensorNames names = new TensorNames(steps.keySet(), rules);
    SequencedMap<String, NameRules.Rule> matching = rules.matching(parts.parameters().keySet());
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    for (String path : parts.parameters().keySet()) {
      rules.tensors(path, matching.get(path)).stream()
          .flatMap(tensor -> names.find(tensor).stream())
          .findFirst()
          .ifPresent(tensor -> counts.put(path, Objects.requireNonNull(steps.get(tensor))));
    }
    return counts;
  }

  private SequencedMap<String, Shape> shapes(Collection<String> paths) {
    SequencedMap<String, NDArray> values = parts.values();
    SequencedMap<String, Shape> shapes = new LinkedHashMap<>();
    paths.forEach(
        path -> shapes.put(path, Objects.requireNonNull(values.get(path), path).getShape()));
    return shapes;
  }

  /// Loads tensors as arrays of these shapes, by the names of the rules.
  private static SequencedMap<String, NDArray> load(
      GantrySession session,
      NDManager host,
      SequencedMap<String, StoredTensor> tensors,
      SequencedMap<String, Shape> shapes,
      NameRules names) {
    ParameterList wanted = new ParameterList();
    shapes.forEach((path, shape) ->
        wanted.add(
            path,
            Parameter.builder()
                .setName(path)
                .setType(Parameter.Type.OTHER)
                .optRequiresGrad(false)
                .optShape(shape)
                .build()));
    var _ = new ParameterLoad(session, host, LoadSettings.DEFAULTS, tensors).into(wanted, names);
    SequencedMap<String, NDArray> loaded = new LinkedHashMap<>();
    wanted.forEach(pair -> loaded.put(pair.getKey(), pair.getValue().getArray()));
    return loaded;
  }

  /// The tensors of a folder.
  ///
  /// @param model the model's tensors, by their names in the model
  /// @param states the optimizer's tensors, by their names without the prefix of all states
  private record Found(
      SequencedMap<String, StoredTensor> model, SequencedMap<String, StoredTensor> states) {
    /// Finds the names that the program gave to model and optimizer, by a tensor that both have.
    static Found of(Path folder, WeightsCatalogue saved) {
      SequencedMap<String, StoredTensor> all = saved.tensors();
      String model = MODEL;
      String states = STATE;
      String first =
          all.keySet().stream()
              .filter(name -> ANY_STATE.stream().anyMatch(name::endsWith))
              .findFirst()
              .orElse("");
      int end = first.lastIndexOf('.');
      for (int at = first.indexOf(IN_STATE); at >= 0; at = first.indexOf(IN_STATE, at + 1)) {
        String before = first.substring(0, at + IN_STATE.length());
        String tensor = before.length() < end ? first.substring(before.length(), end) : first;
        Optional<String> own =
            Stream.concat(
                    Stream.of(MODEL + tensor, tensor).filter(all::containsKey),
                    all.keySet().stream()
                        .filter(name -> name.endsWith("." + tensor) && !name.startsWith(before)))
                .findFirst();
        if (own.isPresent()) {
          model = own.get().substring(0, own.get().length() - tensor.length());
          states = before;
          break;
        }
      }
      Found found = new Found(new LinkedHashMap<>(), new LinkedHashMap<>());
      for (Map.Entry<String, StoredTensor> each : all.entrySet()) {
        if (each.getKey().startsWith(states)) {
          found.states.put(each.getKey().substring(states.length()), each.getValue());
        } else if (each.getKey().startsWith(model)) {
          String tensor = each.getKey().substring(model.length());
          found.model.put(tensor, renamed(each.getValue(), tensor));
        }
      }
      if (found.model.isEmpty()) {
        throw new MisuseException(
            "%s must have a model, whose tensors' names begin with '%s' (%s)"
                .formatted(
                    folder,
                    model,
                    all.isEmpty()
                        ? "it has no tensors"
                        : "its first tensor is '" + all.firstEntry().getKey() + "'"));
      }
      return found;
    }

    /// The optimizer's tensors of one state, by the names of the model's tensors.
    SequencedMap<String, StoredTensor> ending(String suffix) {
      SequencedMap<String, StoredTensor> some = new LinkedHashMap<>();
      states.forEach((name, tensor) -> {
        if (name.endsWith(suffix)) {
          String own = name.substring(0, name.length() - suffix.length());
          some.put(own, renamed(tensor, own));
        }
      });
      return some;
    }

    private static StoredTensor renamed(StoredTensor tensor, String name) {
      return new StoredTensor(
          name, tensor.dtype(), tensor.shape(), tensor.extent(), tensor.encoding());
    }
  }
}
