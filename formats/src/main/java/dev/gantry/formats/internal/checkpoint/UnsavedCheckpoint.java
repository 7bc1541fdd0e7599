// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.formats.internal.json.JsonWriter;
import dev.gantry.formats.internal.safetensors.NewTensor;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;

/// A checkpoint to be saved. Immutable.
///
/// @param step the training step, 0 or more
/// @param groups the tensors by the name of their group, such as `model`: each group becomes a safetensors
///     checkpoint of its own, `model.safetensors.index.json` and its data files
/// @param others files beside those of the groups, by their names alone, such as those of another format; the
///     saver writes and removes them with the checkpoint
/// @param state what a training needs besides tensors
/// @param metrics the metrics by name, by which the best checkpoints can be kept
/// @param metadata the user's own notes, also put into the data files
/// @param finite whether no value of the model is NaN or infinite
public record UnsavedCheckpoint(
    long step,
    SequencedMap<String, List<NewTensor>> groups,
    List<NewFile> others,
    Map<String, String> state,
    Map<String, Double> metrics,
    Map<String, String> metadata,
    boolean finite) {
  /// Makes a checkpoint of groups alone, whose values are finite.
  public UnsavedCheckpoint(
      long step,
      SequencedMap<String, List<NewTensor>> groups,
      Map<String, String> state,
      Map<String, Double> metrics,
      Map<String, String> metadata) {
    this(step, groups, List.of(), state, metrics, metadata, true);
  }

  /// @throws MisuseException if the step is negative, a group's name is not allowed, or a text is too long
  ///     or no valid Unicode
  public UnsavedCheckpoint {
    MisuseException.requireRange("step", step, 0, Long.MAX_VALUE);
    SequencedMap<String, List<NewTensor>> copies = new LinkedHashMap<>();
    groups.forEach((name, tensors) -> {
      if (!name.matches("[a-z][a-z0-9_]*")) {
        throw new MisuseException("no name for a group: '" + name + "'");
      }
      copies.put(name, List.copyOf(tensors));
    });
    groups = Collections.unmodifiableSequencedMap(copies);
    others = List.copyOf(others);
    state = Collections.unmodifiableMap(new LinkedHashMap<>(state));
    state.forEach((name, value) -> {
      checkText(name);
      checkText(value);
    });
    metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics));
    metrics.forEach((name, value) -> {
      checkText(name);
      Objects.requireNonNull(value, name);
    });
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
    metadata.forEach((name, value) -> {
      checkText(name);
      checkText(value);
    });
  }

  private static void checkText(String text) {
    JsonWriter.requireText("a name or value", text);
  }
}
