// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.djl.internal.names.Names;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.SequencedMap;
import java.util.SequencedSet;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/// The state that the optimizer of a training keeps from step to step. DJL holds this state in
/// private fields, by parameter ids that change from run to run; this class names it by the paths
/// of the parameters.
///
/// An optimizer that several trainers share holds the state of all of them; this class reads and
/// sets the state of one trainer's parameters. Call its methods on the thread that steps the
/// trainer.
public final class OptimizerState {
  private static final String COUNTS_NAME = "updateCounts";
  private static final String UPDATES_NAME = "numUpdate";

  /// The names of the state that every optimizer has.
  static final List<String> FIELDS = List.of(COUNTS_NAME, UPDATES_NAME);

  private static final PrivateField<Map<String, Integer>> COUNTS =
      PrivateField.of(
          Optimizer.class, COUNTS_NAME, "java.util.Map<java.lang.String, java.lang.Integer>");
  private static final PrivateField<Integer> UPDATES =
      PrivateField.of(Optimizer.class, UPDATES_NAME, "int");

  private static final PrivateField<Integer> BEGIN =
      PrivateField.of(Optimizer.class, "beginNumUpdate", "int");

  /// Stands for the count of a parameter that is not updated.
  private static final int NO_COUNT = -1;

  private final TrainerParts parts;
  private final OptimizerKind kind;

  /// The counts at the last [#takeCounts]; empty before the first one.
  private int[] counts = {};

  private OptimizerState(TrainerParts parts, OptimizerKind kind) {
    this.parts = parts;
    this.kind = kind;
  }

  /// @throws MisuseException if the optimizer is neither one of DJL's nor derived from one, may
  ///     have state that is not known here, or if this version of DJL keeps its state in other
  ///     fields
  public static OptimizerState of(Trainer trainer) {
    return of(TrainerParts.of(trainer));
  }

  /// The state that an optimizer keeps for some parameters; throws what [#of(Trainer)] throws.
  static OptimizerState of(TrainerParts parts) {
    PrivateField.requireAll(List.of(COUNTS, UPDATES, BEGIN));
    return new OptimizerState(parts, OptimizerKind.of(parts.optimizer()));
  }

  /// How often each parameter was updated, in their order; [#NO_COUNT] for one that has no gradient. Each
  /// step raises all of these counts.
  ///
  /// @throws MisuseException if the optimizer does not count updates
  private int[] countsNow() {
    if (!kind.countsUpdates()) {
      throw new MisuseException(
          "DJL's " + kind.djlName() + " does not count updates, so its steps cannot be counted");
    }
    Map<String, Integer> byId = COUNTS.get(parts.optimizer());
    int[] counts = new int[parts.parameters().size()];
    int next = 0;
    for (Parameter parameter : parts.parameters().values()) {
      counts[next++] =
          parameter.requiresGradient() ? byId.getOrDefault(parameter.getId(), 0) : NO_COUNT;
    }
    return counts;
  }

  /// Remembers how often each parameter was updated until now.
  public void takeCounts() {
    counts = countsNow();
  }

  /// Whether a step was made since [#takeCounts]. All counts must have risen, so that a step that
  /// failed halfway does not count.
  public boolean isStepped() {
    int[] now = countsNow();
    for (int i = 0; i < counts.length; i++) {
      // A parameter that was frozen has no count.
      if (counts[i] != NO_COUNT && now[i] != NO_COUNT && now[i] <= counts[i]) {
        return false;
      }
    }
    return counts.length > 0;
  }

  /// Whether no count has changed since [#takeCounts], as a step or a restore would.
  public boolean isUnchanged() {
    return Arrays.equals(counts, countsNow());
  }

  /// The optimizer's state now. The arrays are the optimizer's own, so the next step changes them.
  /// With several devices, they are the arrays of the first device.
  public SavedOptimizer<NDArray> values() {
    SequencedMap<String, NDArray> arrays = arrays(this::value);
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    parts
        .parameters()
        .forEach((path, parameter) -> {
          Integer count = COUNTS.get(parts.optimizer()).get(parameter.getId());
          if (count != null) {
            counts.put(path, count);
          }
        });
    return new SavedOptimizer<>(kind.djlName(), arrays, counts, UPDATES.get(parts.optimizer()));
  }

  /// DJL's name of the optimizer's class, such as `Adam`.
  String kind() {
    return kind.djlName();
  }

  /// The names of the states that the optimizer keeps of each parameter, such as `means`.
  List<String> states() {
    return kind.states().stream()
        .filter(state -> state.isUsedBy(parts.optimizer()))
        .map(OptimizerKind.State::name)
        .toList();
  }

  /// Returns the state now as [#values] does, with counts as on one device.
  SavedOptimizer<NDArray> valuesOfOne() {
    return values().counted(parts.updatedDevices().size(), 1, BEGIN.get(parts.optimizer()));
  }

  /// The arrays of [#values] on another device, as far as that device has any.
  ///
  /// @param device the device's index among the trainer's devices
  SequencedMap<String, NDArray> values(int device) {
    return arrays((state, path) ->
        Optional.ofNullable(byDevice(state, path).get(parts.devices().get(device))));
  }

  private SequencedMap<String, NDArray> arrays(
      BiFunction<OptimizerKind.State, String, Optional<NDArray>> value) {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    for (OptimizerKind.State state : kind.states()) {
      for (String path : parts.parameters().keySet()) {
        value.apply(state, path).ifPresent(array -> arrays.put(state.key(path), array));
      }
    }
    return arrays;
  }

  private Map<Device, NDArray> byDevice(OptimizerKind.State state, String path) {
    return state.arrays().get(parts.optimizer()).getOrDefault(parameter(path).getId(), Map.of());
  }

  private Parameter parameter(String path) {
    return Objects.requireNonNull(parts.parameters().get(path), path);
  }

  /// Arrays with the shapes and types that [#values] will have after all parameters have been
  /// updated, to compute sizes. For an array that does not exist yet, the parameter's array stands
  /// in, which has the same shape and type.
  SequencedMap<String, NDArray> expected() {
    Map<String, NDArray> parameters = parts.values();
    return arrays((state, path) ->
        value(state, path)
            .or(() ->
                parameter(path).requiresGradient() && state.isUsedBy(parts.optimizer())
                    ? Optional.ofNullable(parameters.get(path))
                    : Optional.empty()));
  }

  private Optional<NDArray> value(OptimizerKind.State state, String path) {
    Map<Device, NDArray> byDevice = byDevice(state, path);
    return parts.devices().stream()
        .flatMap(device -> Stream.ofNullable(byDevice.get(device)))
        .findFirst()
        // The array of another trainer's device is taken, since DJL would copy it in this
        // trainer's first step.
        .or(() -> byDevice.values().stream().findFirst());
  }

  /// Checks that a saved state fits this optimizer and its parameters.
  ///
  /// @throws MisuseException if the state is of another kind of optimizer, of an optimizer whose
  ///     configuration uses other states, or does not fit the parameters
  public void check(SavedOptimizer<ArrayKind> saved) {
    if (!saved.kind().equals(kind.djlName())) {
      throw new MisuseException(
          ("the saved state is that of the optimizer %s, and the trainer's optimizer is %s;"
                  + " optOptimizer(false) of a RestoreRequest leaves the trainer's as it is")
              .formatted(saved.kind(), kind.djlName()));
    }
    checkNames(saved);
    for (OptimizerKind.State state : kind.states()) {
      for (String path : parts.parameters().keySet()) {
        String key = state.key(path);
        ArrayKind savedKind = saved.arrays().get(key);
        if (savedKind != null) {
          parts.requireLike(path, "the saved state '" + key + "'", savedKind, "");
        }
      }
    }
  }

  /// Checks that for each parameter either all states that the optimizer keeps are saved, or none.
  private void checkNames(SavedOptimizer<ArrayKind> saved) {
    Set<String> savedNames = new LinkedHashSet<>(saved.arrays().keySet());
    saved.updateCounts().keySet().forEach(path -> savedNames.add(countKey(path)));
    SequencedSet<String> fitting = new LinkedHashSet<>();
    for (String path : parts.parameters().keySet()) {
      boolean updated =
          savedNames.contains(countKey(path))
              || kind.states().stream().anyMatch(state -> savedNames.contains(state.key(path)));
      if (updated) {
        fitting.addAll(names(path));
      }
    }
    Names.requireSame(
        "the saved state of " + kind.djlName() + " does not fit the trainer's",
        "the trainer's optimizer",
        savedNames,
        fitting);
  }

  private List<String> names(String path) {
    List<String> names = new ArrayList<>();
    kind.states().stream()
        .filter(state -> state.isUsedBy(parts.optimizer()))
        .forEach(state -> names.add(state.key(path)));
    if (kind.countsUpdates()) {
      names.add(countKey(path));
    }
    return names;
  }

  /// The name of an update count in a message.
  private static String countKey(String path) {
    return COUNTS_NAME + "/" + path;
  }

  /// Begins to set the optimizer to a saved state, even if it has made steps already. The values
  /// are copied, on all devices of the trainer; in the end, arrays that the optimizer no longer
  /// needs are closed. New arrays belong to the optimizer, as DJL's own do, and no manager closes
  /// them.
  ///
  /// @throws MisuseException as [#check]
  /// @throws dev.gantry.core.TransferException if there is no memory
  public StateReplacement replace(SavedOptimizer<ArrayKind> saved) {
    check(saved);
    StateReplacement replacement = new StateReplacement(parts);
    Cleanup.orUndo(
        () -> {
          for (OptimizerKind.State state : kind.states()) {
            for (String path : parts.parameters().keySet()) {
              String key = state.key(path);
              replacement.plan(state, key, parameter(path).getId(), saved.arrays().get(key));
            }
          }
        },
        replacement::close);
    replacement.plan(() -> setCounts(saved));
    return replacement;
  }

  /// The saved state with update counts as DJL would have counted them on the devices of this trainer.
  ///
  /// @param devices on how many devices each update was counted
  SavedOptimizer<ArrayKind> counted(SavedOptimizer<ArrayKind> saved, int devices) {
    return saved.counted(devices, parts.updatedDevices().size(), BEGIN.get(parts.optimizer()));
  }

  private void setCounts(SavedOptimizer<ArrayKind> saved) {
    Map<String, Integer> counts = COUNTS.get(parts.optimizer());
    parts
        .parameters()
        .forEach((path, parameter) -> {
          Integer count = saved.updateCounts().get(path);
          if (count == null) {
            counts.remove(parameter.getId());
          } else {
            counts.put(parameter.getId(), count);
          }
        });
    UPDATES.set(parts.optimizer(), saved.updates());
  }
}
