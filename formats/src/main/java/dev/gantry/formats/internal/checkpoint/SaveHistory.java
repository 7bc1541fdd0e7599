// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// The saves that a checkpoint's training came through. Two savers that go on from one checkpoint number
/// their saves alike; their histories differ. Immutable.
///
/// @param saves the number of the last save of each saver, by the saver's name, in the order of time. The
///     last one is the checkpoint itself, the one before it the parent of the saver's first. Empty in
///     manifests that have none
record SaveHistory(SequencedMap<String, Long> saves) {
  static final SaveHistory NONE = new SaveHistory(new LinkedHashMap<>());

  SaveHistory {
    saves = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(saves));
  }

  /// After one more save.
  SaveHistory then(String saver, long sequence) {
    SequencedMap<String, Long> longer = new LinkedHashMap<>(saves);
    longer.putLast(saver, sequence);
    return new SaveHistory(longer);
  }

  /// Whether a training came through a checkpoint: also where that one does not tell its history.
  ///
  /// @param other of the checkpoint
  boolean contains(SaveHistory other) {
    if (other.saves.isEmpty()) {
      return true;
    }
    Map.Entry<String, Long> save = other.saves.lastEntry();
    return saves.getOrDefault(save.getKey(), Long.MIN_VALUE) >= save.getValue();
  }

  /// Whether neither of two trainings came through the other's checkpoint.
  boolean partedFrom(SaveHistory other) {
    return !saves.isEmpty() && !contains(other) && !other.contains(this);
  }
}
