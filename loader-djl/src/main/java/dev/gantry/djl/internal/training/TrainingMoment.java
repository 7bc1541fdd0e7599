// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;

/// What a batch changes before its step, copied when the forward pass is over: running means and
/// variances, random number generators, and states of your own. The other parameters and the
/// optimizer change only with the step that follows. Owns the copies.
///
/// @param arrays by the path of the parameter
/// @param state as entries of [SavedState]
public record TrainingMoment(Map<String, NDArray> arrays, SequencedMap<String, String> state)
    implements AutoCloseable {
  public static TrainingMoment copy(Trainer trainer, UserStates states) {
    TrainerParts parts = TrainerParts.of(trainer);
    Map<String, NDArray> copies = new LinkedHashMap<>();
    boolean complete = false;
    try {
      parts
          .values()
          .forEach((path, value) -> {
            if (changesForward(Objects.requireNonNull(parts.parameters().get(path)))) {
              NDArray copy = value.duplicate();
              copies.put(path, copy);
              // The batch's manager, to which it may belong, closes sooner.
              copy.attach(trainer.getManager());
            }
          });
      TrainingMoment moment = new TrainingMoment(copies, state(trainer, states));
      complete = true;
      return moment;
    } finally {
      if (!complete) {
        copies.values().forEach(NDArray::close);
      }
    }
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
    arrays.values().forEach(NDArray::close);
  }
}
