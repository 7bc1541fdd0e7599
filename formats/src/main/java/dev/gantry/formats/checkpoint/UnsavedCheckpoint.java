package dev.gantry.formats.checkpoint;

import dev.gantry.formats.safetensors.NewTensor;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;

/// A checkpoint to be saved. Immutable.
///
/// @param step of the training, 0 or more
/// @param groups tensors by the name of their group, such as `model`: each group becomes a
///     safetensors checkpoint of its own, `model.safetensors.index.json` and its shards
/// @param state what a training needs besides tensors
/// @param metrics by which the best may be kept
/// @param metadata the user's own notes, also put into the shards
public record UnsavedCheckpoint(
    long step,
    SequencedMap<String, List<NewTensor>> groups,
    Map<String, String> state,
    Map<String, Double> metrics,
    Map<String, String> metadata) {
  public UnsavedCheckpoint {
    if (step < 0) {
      throw new IllegalArgumentException("negative step " + step);
    }
    SequencedMap<String, List<NewTensor>> copies = new LinkedHashMap<>();
    groups.forEach((name, tensors) -> {
      if (!name.matches("[a-z][a-z0-9_]*")) {
        throw new IllegalArgumentException("no name for a group: '" + name + "'");
      }
      copies.put(name, List.copyOf(tensors));
    });
    groups = Collections.unmodifiableSequencedMap(copies);
    state = Collections.unmodifiableMap(new LinkedHashMap<>(state));
    metrics = Collections.unmodifiableMap(new LinkedHashMap<>(metrics));
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
  }
}
