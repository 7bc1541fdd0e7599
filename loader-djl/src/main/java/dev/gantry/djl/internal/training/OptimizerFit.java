package dev.gantry.djl.internal.training;

import dev.gantry.core.MisuseException;
import dev.gantry.djl.internal.guard.ArrayKind;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.SequencedSet;
import java.util.Set;

/// Whether saved state is one that an optimizer could have come to with the parameters it has.
final class OptimizerFit {
  private final TrainerParts parts;
  private final OptimizerKind kind;

  OptimizerFit(TrainerParts parts, OptimizerKind kind) {
    this.parts = parts;
    this.kind = kind;
  }

  /// @throws MisuseException if it is not
  void check(SavedOptimizer saved) {
    if (!saved.kind().equals(kind.djlName())) {
      throw new MisuseException(
          "the saved state is that of the optimizer "
              + saved.kind()
              + ", and the trainer's optimizer is "
              + kind.djlName());
    }
    checkNames(saved);
    for (StateField state : kind.states()) {
      for (String path : parts.parameters().keySet()) {
        String key = state.key(path);
        ArrayKind savedKind = saved.arrays().get(key);
        if (savedKind != null) {
          parts.requireLike(path, "the saved state '" + key + "'", savedKind);
        }
      }
    }
  }

  /// Each parameter has all that the optimizer keeps for one, or nothing.
  private void checkNames(SavedOptimizer saved) {
    Set<String> savedNames = new LinkedHashSet<>(saved.arrays().keySet());
    saved.updateCounts().keySet().forEach(path -> savedNames.add(countKey(path)));
    SequencedSet<String> fitting = new LinkedHashSet<>();
    for (String path : parts.parameters().keySet()) {
      boolean updated =
          savedNames.contains(countKey(path))
              || kind.states().stream().anyMatch(state -> savedNames.contains(state.key(path)));
      if (updated) {
        fitting.addAll(names(path));
      }
    }
    Names.requireSame(
        "the saved state of " + kind.djlName() + " does not fit the trainer's",
        "the trainer's optimizer",
        savedNames,
        fitting);
  }

  private List<String> names(String path) {
    List<String> names = new ArrayList<>();
    kind.states().stream()
        .filter(state -> state.isUsedBy(parts.optimizer()))
        .forEach(state -> names.add(state.key(path)));
    if (kind.countsUpdates()) {
      names.add(countKey(path));
    }
    return names;
  }

  /// The name of an update count in a message.
  private static String countKey(String path) {
    return "updateCounts/" + path;
  }
}
