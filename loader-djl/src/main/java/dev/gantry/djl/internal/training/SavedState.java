// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.training;

import dev.gantry.core.MalformedFileException;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.formats.internal.checkpoint.CheckpointFolder;
import dev.gantry.formats.internal.checkpoint.StoreFolder;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.SequencedMap;

/// The state of a training as text entries of a checkpoint's manifest, by key. A manifest is
/// malformed if an entry is missing or is not a number although it must be.
public record SavedState(CheckpointFolder checkpoint) {
  static final String EPOCH = "epoch";
  static final String DATASET = "dataset";
  static final String OPTIMIZER_KIND = "optimizer.kind";
  static final String OPTIMIZER_UPDATES = "optimizer.updates";

  /// The beginning of a key, which the path of a parameter follows.
  static final String OPTIMIZER_COUNT = "optimizer.count.";

  /// The key for the number of devices of the training; a missing entry means one.
  static final String DEVICES = "devices";

  /// The key for the number of devices on which each update was counted; a missing entry means one.
  static final String OPTIMIZER_DEVICES = "optimizer.devices";

  static final String SEED = "random.seed";

  /// The beginning of a key, which the name of a generator follows.
  static final String RANDOM = "random.state.";

  /// The beginning of a key, which the name that you gave to a state of your own follows.
  static final String USER = "user.";

  private static final long MAX_DEVICES = 1 << 16;

  private SequencedMap<String, String> state() {
    return checkpoint.manifest().state();
  }

  public long epoch() {
    return number(EPOCH, Long.MAX_VALUE);
  }

  public Optional<String> dataset() {
    return Optional.ofNullable(state().get(DATASET));
  }

  /// Whether the checkpoint was saved with a trainer.
  public boolean hasTraining() {
    return state().containsKey(OPTIMIZER_KIND);
  }

  /// @param arrays the dtypes and shapes of the optimizer's arrays in the checkpoint
  public SavedOptimizer<ArrayKind> optimizer(SequencedMap<String, ArrayKind> arrays) {
    SequencedMap<String, Integer> counts = new LinkedHashMap<>();
    after(OPTIMIZER_COUNT)
        .keySet()
        .forEach(path -> counts.put(path, (int) number(OPTIMIZER_COUNT + path, Integer.MAX_VALUE)));
    return new SavedOptimizer<>(
        text(OPTIMIZER_KIND), arrays, counts, (int) number(OPTIMIZER_UPDATES, Integer.MAX_VALUE));
  }

  int devices() {
    return devices(DEVICES);
  }

  int countingDevices() {
    return devices(OPTIMIZER_DEVICES);
  }

  private int devices(String key) {
    return state().containsKey(key) ? Math.max(1, (int) number(key, MAX_DEVICES)) : 1;
  }

  /// The user's own states, by their names.
  public SequencedMap<String, String> user() {
    return after(USER);
  }

  /// The seed that DJL's engine was given last, if it was seeded.
  OptionalInt seed() {
    String text = state().get(SEED);
    if (text == null) {
      return OptionalInt.empty();
    }
    try {
      return OptionalInt.of(Integer.parseInt(text));
    } catch (NumberFormatException _) {
      throw invalid(SEED, text);
    }
  }

  /// The state of a random number generator, if it was saved.
  Optional<String> generator(String name) {
    return Optional.ofNullable(state().get(RANDOM + name));
  }

  /// The entries whose keys begin with `prefix`, by the rest of the key.
  private SequencedMap<String, String> after(String prefix) {
    SequencedMap<String, String> found = new LinkedHashMap<>();
    state()
        .forEach((key, value) -> {
          if (key.startsWith(prefix)) {
            found.put(key.substring(prefix.length()), value);
          }
        });
    return found;
  }

  private String text(String key) {
    String value = state().get(key);
    if (value == null) {
      throw malformed("missing-state", "there is no '" + key + "'");
    }
    return value;
  }

  /// The number of an entry, from 0 to `most`.
  private long number(String key, long most) {
    String text = text(key);
    try {
      long value = Long.parseLong(text);
      if (value >= 0 && value <= most) {
        return value;
      }
    } catch (NumberFormatException _) {
      // A text that is not a number is refused below, like a number that is out of range.
    }
    throw invalid(key, text);
  }

  private MalformedFileException invalid(String key, String text) {
    return malformed("invalid-state", "'" + key + "' cannot be '" + text + "'");
  }

  private MalformedFileException malformed(String kind, String detail) {
    return new MalformedFileException(StoreFolder.manifest(checkpoint.folder()), 0, kind, detail);
  }
}
