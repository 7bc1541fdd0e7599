package dev.gantry.djl.internal.training;

import ai.djl.Device;
import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import ai.djl.training.optimizer.Optimizer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.torch.PrivateField;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.stream.Stream;

/// What the optimizer of a training keeps from step to step: to be saved, and to be put into the
/// optimizer of another process. DJL keeps it in private fields, by numbers that change from run to
/// run; here it goes by the paths of the parameters.
///
/// An optimizer that several trainers share holds the state of all; here only that of this
/// trainer's parameters is seen. Threads: that which steps the trainer.
public final class OptimizerState {
  private static final String COUNTS_NAME = "updateCounts";
  private static final String UPDATES_NAME = "numUpdate";

  /// The state that each optimizer has.
  static final List<String> FIELDS = List.of(COUNTS_NAME, UPDATES_NAME);

  private static final PrivateField<Map<String, Integer>> COUNTS =
      PrivateField.of(
          Optimizer.class, COUNTS_NAME, "java.util.Map<java.lang.String, java.lang.Integer>");
  private static final PrivateField<Integer> UPDATES =
      PrivateField.of(Optimizer.class, UPDATES_NAME, "int");

  private final TrainerParts parts;
  private final OptimizerKind kind;

  private OptimizerState(TrainerParts parts, OptimizerKind kind) {
    this.parts = parts;
    this.kind = kind;
  }

  /// @throws MisuseException if the optimizer is none of those of DJL, nor derived from one, may
  ///     have state that is not known here, or this version of DJL keeps its state elsewhere
  public static OptimizerState of(Trainer trainer) {
    TrainerParts parts = TrainerParts.of(trainer);
    PrivateField.requireAll(List.of(COUNTS, UPDATES));
    return new OptimizerState(parts, OptimizerKind.of(parts.optimizer()));
  }

  /// How often each parameter was updated that has a gradient, by its path: a step makes each of
  /// them more.
  ///
  /// @throws MisuseException if the optimizer does not count updates
  public Map<String, Integer> updateCounts() {
    if (!kind.countsUpdates()) {
      throw new MisuseException(
          "DJL's "
              + kind.djlName()
              + " counts no updates, so that nothing tells when it has made one");
    }
    Map<String, Integer> byId = COUNTS.get(parts.optimizer());
    Map<String, Integer> counts = new LinkedHashMap<>();
    parts
        .parameters()
        .forEach((path, parameter) -> {
          if (parameter.requiresGradient()) {
            counts.put(path, byId.getOrDefault(parameter.getId(), 0));
          }
        });
    return counts;
  }

  /// The state as it is. The arrays are the optimizer's own: the next step changes them. Of several
  /// devices, the first's.
  public OptimizerValues values() {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    for (StateField state : kind.states()) {
      Map<String, Map<Device, NDArray>> byId = state.arrays().get(parts.optimizer());
      parts
          .parameters()
          .forEach((path, parameter) -> {
            Map<Device, NDArray> byDevice = byId.getOrDefault(parameter.getId(), Map.of());
            parts.devices().stream()
                .flatMap(device -> Stream.ofNullable(byDevice.get(device)))
                .findFirst()
                // Another trainer's: DJL would copy it in this one's first step.
                .or(() -> byDevice.values().stream().findFirst())
                .ifPresent(array -> arrays.put(state.key(path), array));
          });
    }
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    parts
        .parameters()
        .forEach((path, parameter) -> {
          Integer count = COUNTS.get(parts.optimizer()).get(parameter.getId());
          if (count != null) {
            counts.put(path, count);
          }
        });
    return new OptimizerValues(kind.djlName(), arrays, counts, UPDATES.get(parts.optimizer()));
  }

  /// Checks that the optimizer can go on from what was saved.
  ///
  /// @throws MisuseException if it is of another kind of optimizer or of one that is configured to
  ///     have other states, or does not fit the parameters
  public void check(SavedOptimizer saved) {
    new OptimizerFit(parts, kind).check(saved);
  }

  /// Begins to make the optimizer what it was when `saved` was taken, whether or not it has made
  /// steps of its own. The values are copied, on all devices of the trainer; arrays that the
  /// optimizer had and needs no more are closed in the end. The new ones live as DJL's own do: they
  /// are the optimizer's, and no manager closes them.
  ///
  /// @throws MisuseException as [#check]
  /// @throws dev.gantry.core.TransferException if there is no memory
  public StateReplacement replace(SavedOptimizer saved) {
    check(saved);
    StateReplacement replacement = new StateReplacement(parts);
    boolean complete = false;
    try {
      for (StateField state : kind.states()) {
        parts
            .parameters()
            .forEach((path, parameter) -> {
              String key = state.key(path);
              replacement.plan(state, key, parameter.getId(), saved.arrays().get(key));
            });
      }
      replacement.plan(() -> setCounts(saved));
      complete = true;
      return replacement;
    } finally {
      if (!complete) {
        replacement.close();
      }
    }
  }

  private void setCounts(SavedOptimizer saved) {
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
