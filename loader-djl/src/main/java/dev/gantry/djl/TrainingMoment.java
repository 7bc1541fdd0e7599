package dev.gantry.djl;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import dev.gantry.djl.internal.training.RandomSource;
import dev.gantry.djl.internal.training.TrainingParameters;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// What changes before the step of a batch, copied when its forward pass was over: running means and
/// variances, the generators of random numbers, and states of the user's own. The other parameters and the optimizer change
/// only with the step that follows. Owns the copies.
///
/// @param arrays by the path of the parameter
/// @param state as the manifest has it
record TrainingMoment(Map<String, NDArray> arrays, SequencedMap<String, String> state)
    implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(TrainingMoment.class);

  /// With copies of the arrays, for a checkpoint that is saved when they have changed again.
  static TrainingMoment copied(Trainer trainer, UserStates states) {
    SequencedMap<String, NDArray> values = TrainingParameters.of(trainer).values();
    Map<String, NDArray> copies = new LinkedHashMap<>();
    boolean complete = false;
    try {
      SequencedMap<String, Parameter> parameters =
          TrainingParameters.byPath(trainer.getModel().getBlock());
      values.forEach((path, value) -> {
        if (changesForward(Objects.requireNonNull(parameters.get(path)))) {
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

  /// Where the generators of random numbers and the user's own states stand now.
  static SequencedMap<String, String> state(Trainer trainer, UserStates states) {
    SequencedMap<String, String> state = new LinkedHashMap<>();
    Integer seed = trainer.getManager().getEngine().getSeed();
    if (seed != null) {
      state.put(StateKeys.SEED, seed.toString());
    }
    for (RandomSource source : RandomSource.of(trainer)) {
      switch (source.state()) {
        case RandomSource.State.Known(String base64) ->
            state.put(StateKeys.RANDOM + source.name(), base64);
        case RandomSource.State.Absent(String reason) ->
            LOG.warn("random numbers of {} are not saved: {}", source.name(), reason);
      }
    }
    states.values().forEach((name, value) -> state.put(StateKeys.USER + name, value));
    return state;
  }

  @Override
  public void close() {
    arrays.values().forEach(NDArray::close);
  }
}
