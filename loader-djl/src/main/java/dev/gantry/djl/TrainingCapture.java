package dev.gantry.djl;

import ai.djl.Model;
import ai.djl.ndarray.NDArray;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.training.OptimizerState;
import dev.gantry.djl.internal.training.OptimizerValues;
import dev.gantry.djl.internal.training.TrainingParameters;
import dev.gantry.formats.internal.checkpoint.UnsavedCheckpoint;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedMap;

/// A training as a checkpoint: its tensors where they are now, which this keeps alive until it is
/// closed, and its state in words.
final class TrainingCapture implements AutoCloseable {
  /// The groups of a checkpoint.
  static final String MODEL = "model";

  static final String OPTIMIZER = "optimizer";

  private final List<ArraySources> sources = new ArrayList<>();
  private final SequencedMap<String, List<NewTensor>> groups = new LinkedHashMap<>();
  private final SequencedMap<String, String> state = new LinkedHashMap<>();
  private final SaveRequest request;

  private TrainingCapture(SaveRequest request) {
    this.request = request;
  }

  /// @param moment what counts instead of what is there now
  /// @param states of the user's own, saved with a trainer
  /// @throws MisuseException if a parameter is not initialised, or the optimizer's state cannot be
  ///     reached
  static TrainingCapture of(
      SaveRequest request, Optional<TrainingMoment> moment, UserStates states) {
    request.trainer().ifPresent(trainer -> requireOf(request.model(), trainer));
    TrainingCapture capture = new TrainingCapture(request);
    boolean complete = false;
    try {
      capture.state.put(StateKeys.EPOCH, Long.toString(request.epoch()));
      request.datasetState().ifPresent(dataset -> capture.state.put(StateKeys.DATASET, dataset));
      SequencedMap<String, NDArray> parameters =
          request
              .trainer()
              .map(trainer -> TrainingParameters.of(trainer).values())
              .orElseGet(() -> parameters(request));
      moment.ifPresent(earlier -> parameters.putAll(earlier.arrays()));
      capture.add(MODEL, parameters);
      request.trainer().ifPresent(trainer -> capture.addTraining(trainer, moment, states));
      complete = true;
      return capture;
    } finally {
      if (!complete) {
        capture.close();
      }
    }
  }

  /// @throws MisuseException if the trainer trains another model
  static void requireOf(Model model, Trainer trainer) {
    if (!trainer.getModel().getBlock().equals(model.getBlock())) {
      throw new MisuseException("the trainer is not of this model");
    }
  }

  /// Those of a model that nobody trains.
  private static SequencedMap<String, NDArray> parameters(SaveRequest request) {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    TrainingParameters.byPath(request.model().getBlock())
        .forEach((path, parameter) -> {
          if (!parameter.isInitialized()) {
            throw new MisuseException("the parameter '" + path + "' is not initialised");
          }
          arrays.put(path, parameter.getArray());
        });
    return arrays;
  }

  private void addTraining(Trainer trainer, Optional<TrainingMoment> moment, UserStates states) {
    OptimizerValues optimizer = OptimizerState.of(trainer).values();
    state.put(StateKeys.OPTIMIZER_KIND, optimizer.kind());
    state.put(StateKeys.OPTIMIZER_UPDATES, Integer.toString(optimizer.updates()));
    optimizer
        .updateCounts()
        .forEach((path, count) -> state.put(StateKeys.OPTIMIZER_COUNT + path, count.toString()));
    add(OPTIMIZER, optimizer.arrays());
    state.putAll(
        moment.map(TrainingMoment::state).orElseGet(() -> TrainingMoment.state(trainer, states)));
  }

  private void add(String group, Map<String, NDArray> arrays) {
    ArraySources added = ArraySources.of(arrays);
    sources.add(added);
    groups.put(group, added.tensors());
  }

  UnsavedCheckpoint checkpoint() {
    return new UnsavedCheckpoint(
        request.step(), groups, state, request.metrics(), request.metadata());
  }

  @Override
  public void close() {
    sources.forEach(ArraySources::close);
    sources.clear();
  }
}
