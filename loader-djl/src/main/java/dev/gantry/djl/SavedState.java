package dev.gantry.djl;

import dev.gantry.core.MalformedFileException;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.Manifest;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedMap;

/// The state of a training as a checkpoint's manifest spells it. What the manifest lacks, and what
/// is no number where there must be one, is a malformed file.
final class SavedState {
  private final CheckpointFolder checkpoint;
  private final SequencedMap<String, String> state;

  SavedState(CheckpointFolder checkpoint) {
    this.checkpoint = checkpoint;
    this.state = checkpoint.manifest().state();
  }

  long epoch() {
    return number(StateKeys.EPOCH, Long.MAX_VALUE);
  }

  Optional<String> dataset() {
    return Optional.ofNullable(state.get(StateKeys.DATASET));
  }

  /// Whether a trainer was saved, too.
  boolean hasTraining() {
    return state.containsKey(StateKeys.OPTIMIZER_KIND);
  }

  String optimizerKind() {
    return text(StateKeys.OPTIMIZER_KIND);
  }

  int optimizerUpdates() {
    return (int) number(StateKeys.OPTIMIZER_UPDATES, Integer.MAX_VALUE);
  }

  /// How often each parameter was updated, by its path.
  SequencedMap<String, Integer> updateCounts() {
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    after(StateKeys.OPTIMIZER_COUNT)
        .keySet()
        .forEach(path ->
            counts.put(path, (int) number(StateKeys.OPTIMIZER_COUNT + path, Integer.MAX_VALUE)));
    return counts;
  }

  /// The states of the user's own, by their names.
  SequencedMap<String, String> user() {
    return after(StateKeys.USER);
  }

  /// What the keys hold that begin so, by the rest of the key.
  private SequencedMap<String, String> after(String prefix) {
    SequencedMap<String, String> found = new LinkedHashMap<>();
    state.forEach((key, value) -> {
      if (key.startsWith(prefix)) {
        found.put(key.substring(prefix.length()), value);
      }
    });
    return found;
  }

  /// With which DJL's engine was seeded last, if it was.
  OptionalInt seed() {
    String text = state.get(StateKeys.SEED);
    if (text == null) {
      return OptionalInt.empty();
    }
    try {
      return OptionalInt.of(Integer.parseInt(text));
    } catch (NumberFormatException _) {
      throw invalid(StateKeys.SEED, text);
    }
  }

  /// Where a generator of random numbers stood, if that was saved.
  Optional<String> generator(String name) {
    return Optional.ofNullable(state.get(StateKeys.RANDOM + name));
  }

  private String text(String key) {
    String value = state.get(key);
    if (value == null) {
      throw malformed("missing-state", "there is no '" + key + "'");
    }
    return value;
  }

  /// From 0 to `most`.
  private long number(String key, long most) {
    String text = text(key);
    try {
      long value = Long.parseLong(text);
      if (value >= 0 && value <= most) {
        return value;
      }
    } catch (NumberFormatException _) {
      // As a number out of range.
    }
    throw invalid(key, text);
  }

  private MalformedFileException invalid(String key, String text) {
    return malformed("invalid-state", "'" + key + "' cannot be '" + text + "'");
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(
        checkpoint.folder().resolve(Manifest.FILE_NAME), 0, kind, detail);
  }
}
