package dev.gantry.djl.internal.training;

import ai.djl.ndarray.NDArray;
import ai.djl.nn.Block;
import ai.djl.nn.Parameter;
import ai.djl.pytorch.engine.PtNDArray;
import ai.djl.pytorch.jni.JniUtils;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.guard.ArrayKind;
import dev.gantry.djl.internal.guard.TorchArrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.SequencedMap;

/// The parameters as a training sees them. A trainer that uses another device than the model, or
/// several, works on copies of its own, and the model's arrays are out of date until it is closed.
/// Threads: that which steps the trainer.
public final class TrainingParameters {
  private final TrainerParts parts;

  private TrainingParameters(TrainerParts parts) {
    this.parts = parts;
  }

  /// @throws MisuseException if this version of DJL keeps a trainer's parameters elsewhere
  public static TrainingParameters of(Trainer trainer) {
    return new TrainingParameters(TrainerParts.of(trainer));
  }

  /// All parameters of a block, initialised or not, by their path in the block's order; one with
  /// several paths is there once, under the first.
  ///
  /// @throws MisuseException if two parameters have one path
  public static SequencedMap<String, Parameter> byPath(Block block) {
    return TrainerParts.parameters(block);
  }

  /// The array of each parameter by its path, in the block's order; a parameter with several paths
  /// is there once, under the first. They are those that the training works on: the next step
  /// changes them. Of several devices, the first's.
  ///
  /// @throws MisuseException if a parameter is not initialised
  public SequencedMap<String, NDArray> values() {
    SequencedMap<String, NDArray> values = new LinkedHashMap<>();
    for (String path : parts.parameters().keySet()) {
      values.put(path, parts.arrays(path).getFirst());
    }
    return values;
  }

  /// Checks that saved values could be those of the parameters.
  ///
  /// @param saved what each is, by path
  /// @throws MisuseException if a parameter has no saved value or a value no parameter, one does
  ///     not fit, or a parameter is not initialised
  public void check(Map<String, ArrayKind> saved) {
    Names.requireSame(
        "the saved parameters do not fit the model's",
        "the model",
        new LinkedHashSet<>(saved.keySet()),
        parts.parameters().sequencedKeySet());
    saved.forEach(
        (path, kind) -> parts.requireLike(path, "the saved parameter '" + path + "'", kind));
  }

  /// Copies values into a parameter, on all devices of the trainer and in the model, and clears a
  /// gradient that waits for a step: it is that of other values.
  ///
  /// @param values of the parameter's rows from `firstRow` on; they stay the caller's
  /// @throws MisuseException if the parameter is not initialised
  /// @throws dev.gantry.core.TransferException if libtorch refuses
  public void take(String path, NDArray values, long firstRow) {
    for (NDArray target : parts.allArrays(path)) {
      TorchArrays.copy(values, target, firstRow);
      clearGradient(TorchArrays.torchArray(target));
    }
  }

  private static void clearGradient(PtNDArray array) {
    if (!array.hasGradient()) {
      return;
    }
    try (PtNDArray gradient = JniUtils.getGradient(array)) {
      // There is none before the first backward pass.
      if (gradient != null) {
        JniUtils.zeroGrad(array);
      }
    }
  }
}
