// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import ai.djl.Model;
import ai.djl.nn.Parameter;
import ai.djl.training.Trainer;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.names.NamePattern;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Objects;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/// The model and the trainer that a restore may change.
///
/// @param trainer null if only the model's parameters are restored
/// @param partial whether the model and the checkpoint may each have parameters that the other lacks
/// @param skipMismatched whether a parameter may have another shape than the saved one
/// @param only patterns of the parameters' paths; empty for all parameters
/// @param optimizer whether the optimizer's state is restored with the trainer's parameters
public record RestoreTarget(
    Model model,
    @Nullable Trainer trainer,
    boolean partial,
    boolean skipMismatched,
    List<NamePattern> only,
    boolean optimizer) {
  public RestoreTarget {
    only = List.copyOf(only);
  }

  /// Makes the target of a whole restore.
  public RestoreTarget(Model model, @Nullable Trainer trainer) {
    this(model, trainer, false, false, List.of(), true);
  }

  /// The parameters and their saved values, without the parameters that the request leaves out.
  /// Parameters that do not fit are included, unless the request allows leaving them out; later
  /// checks refuse them.
  ///
  /// @param skipped by path, the reason why a parameter keeps its value
  /// @param unused the saved parameters that the model lacks
  record Chosen(
      SequencedMap<String, Parameter> parameters,
      SequencedMap<String, StoredTensor> values,
      SequencedMap<String, String> skipped,
      List<String> unused) {
    /// Returns whether the values that belong to a saved parameter, such as its optimizer's
    /// state, are left out with it.
    boolean isLeft(String path) {
      return !isWhole() && !parameters.containsKey(path);
    }

    /// Whether nothing was left out.
    boolean isWhole() {
      return skipped.isEmpty() && unused.isEmpty();
    }
  }

  /// @param saved the checkpoint's parameters by path
  /// @throws MisuseException if nothing is left to restore
  Chosen choose(SequencedMap<String, StoredTensor> saved) {
    SequencedMap<String, Parameter> parameters =
        new LinkedHashMap<>(TrainerParts.parameters(model));
    SequencedMap<String, StoredTensor> values = new LinkedHashMap<>(saved);
    SequencedMap<String, String> skipped = new LinkedHashMap<>();
    parameters.forEach((path, parameter) -> {
      StoredTensor value = saved.get(path);
      if (!matches(path)) {
        skipped.put(path, "optParameters does not name it");
      } else if (value == null && partial) {
        skipped.put(path, "the checkpoint has no such parameter");
      } else if (value != null && skipMismatched && parameter.getShape() != null) {
        TensorShape own = PyTorch.shape(parameter.getShape());
        if (!own.equals(value.shape())) {
          skipped.put(path, "it has shape " + own + ", and the checkpoint's has " + value.shape());
        }
      }
    });
    parameters.keySet().removeAll(skipped.keySet());
    values.keySet().removeIf(path -> skipped.containsKey(path) || !matches(path));
    List<String> unused = new ArrayList<>();
    if (partial) {
      unused.addAll(values.keySet());
      unused.removeAll(parameters.keySet());
      values.keySet().removeAll(unused);
    }
    if (parameters.isEmpty() && !skipped.isEmpty()) {
      throw new MisuseException(
          "no parameter would be restored; parameter '%s', for example, is skipped: %s"
              .formatted(
                  skipped.firstEntry().getKey(),
                  Objects.requireNonNull(skipped.firstEntry().getValue())));
    }
    return new Chosen(parameters, values, skipped, unused);
  }

  private boolean matches(String path) {
    return only.isEmpty() || only.stream().anyMatch(pattern -> pattern.matches(path));
  }
}
