// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;

/// Copies of the values that a batch changes before its step, taken after the forward pass:
/// running means and variances, random number generators, and the user's own states. The other
/// parameters and the optimizer change only in the step that follows. Owns the copies.
///
/// @param arrays for each device, the arrays by the path of the parameter
/// @param state the other state, as entries of [SavedState]
public record TrainingMoment(List<Map<String, NDArray>> arrays, SequencedMap<String, String> state)
    implements AutoCloseable {
  public static TrainingMoment copy(Trainer trainer, UserStates states) {
    TrainerParts parts = TrainerParts.of(trainer);
    List<Map<String, NDArray>> copies = new ArrayList<>();
    return Cleanup.orUndo(
        () -> {
          for (int device = 0; device < parts.devices().size(); device++) {
            Map<String, NDArray> ofDevice = new LinkedHashMap<>();
            copies.add(ofDevice);
            parts
                .values(device)
                .forEach((path, value) -> {
                  if (changesForward(Objects.requireNonNull(parts.parameters().get(path)))) {
                    NDArray copy = value.duplicate();
                    ofDevice.put(path, copy);
                    // The copy is moved to the trainer's manager, because it may belong to the
                    // batch's manager, which closes sooner.
                    copy.attach(trainer.getManager());
                  }
                });
          }
          return new TrainingMoment(copies, state(trainer, states));
        },
        () -> close(copies));
  }

  private static boolean changesForward(Parameter parameter) {
    return switch (parameter.getType()) {
      case RUNNING_MEAN, RUNNING_VAR, OTHER -> !parameter.requiresGradient();
      case WEIGHT, BIAS, GAMMA, BETA -> false;
    };
  }

  static SequencedMap<String, String> state(Trainer trainer, UserStates states) {
    SequencedMap<String, String> state = RandomStates.save(trainer);
    state.putAll(states.save());
    return state;
  }

  @Override
  public void close() {
    close(arrays);
  }

  private static void close(List<Map<String, NDArray>> arrays) {
    Cleanup.forEach(arrays, each -> Cleanup.forEach(each.values(), NDArray::close));
  }
}
