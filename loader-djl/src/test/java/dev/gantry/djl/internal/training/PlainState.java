// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import ai.djl.training.Trainer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// The state of a training in the Java heap, as another process could get it.
public record PlainState(
    SequencedMap<String, Values> parameters,
    String optimizer,
    SequencedMap<String, Values> arrays,
    SequencedMap<String, Integer> counts,
    int updates,
    Map<String, String> generators) {
  public record Values(Shape shape, List<Float> floats) {
    static Values of(NDArray array) {
      List<Float> floats = new ArrayList<>();
      for (float value : array.toFloatArray()) {
        floats.add(value);
      }
      return new Values(array.getShape(), floats);
    }

    NDArray array(NDManager manager) {
      float[] values = new float[floats.size()];
      for (int i = 0; i < values.length; i++) {
        values[i] = floats.get(i);
      }
      return manager.create(values, shape);
    }
  }

  public static PlainState of(Trainer trainer) {
    SavedOptimizer<NDArray> optimizer = OptimizerState.of(trainer).values();
    Map<String, String> generators = new LinkedHashMap<>();
    for (RandomSource source : RandomSource.of(trainer)) {
      if (source.absence().isEmpty()) {
        generators.put(source.name(), source.state());
      }
    }
    return new PlainState(
        plain(TrainerParts.of(trainer).values()),
        optimizer.kind(),
        plain(optimizer.arrays()),
        optimizer.updateCounts(),
        optimizer.updates(),
        generators);
  }

  /// Restores all of the state into a trainer.
  void restore(Trainer trainer) {
    restoreValues(trainer);
    for (RandomSource source : RandomSource.of(trainer)) {
      source.restore(generators.get(source.name()));
    }
  }

  /// Restores the state as [#restore] does, without the random numbers.
  void restoreValues(Trainer trainer) {
    try (NDManager manager = NDManager.newBaseManager()) {
      Restores.parameters(TrainerParts.of(trainer), arrays(parameters, manager));
      Restores.optimizer(OptimizerState.of(trainer), optimizerValues(manager));
    }
  }

  SavedOptimizer<NDArray> optimizerValues(NDManager manager) {
    return new SavedOptimizer<>(optimizer, arrays(arrays, manager), counts, updates);
  }

  private static SequencedMap<String, Values> plain(SequencedMap<String, NDArray> arrays) {
    SequencedMap<String, Values> plain = new LinkedHashMap<>();
    arrays.forEach((name, array) -> plain.put(name, Values.of(array)));
    return plain;
  }

  private static SequencedMap<String, NDArray> arrays(
      SequencedMap<String, Values> plain, NDManager manager) {
    SequencedMap<String, NDArray> arrays = new LinkedHashMap<>();
    plain.forEach((name, values) -> arrays.put(name, values.array(manager)));
    return arrays;
  }
}
