// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.SequencedMap;

/// The saves from which a checkpoint's training was continued. Two savers that continue from the
/// same checkpoint give their saves the same numbers, but their histories differ. Immutable.
///
/// @param saves each saver's last save, by the saver's name, oldest first. The last entry is the
///     checkpoint itself; the entry before it is the save from which its saver continued. Empty
///     for manifests without a history
record SaveHistory(SequencedMap<String, Long> saves) {
  static final SaveHistory NONE = new SaveHistory(new LinkedHashMap<>());

  SaveHistory {
    saves = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(saves));
  }

  /// Returns this history with one more save.
  SaveHistory then(String saver, long sequence) {
    SequencedMap<String, Long> longer = new LinkedHashMap<>(saves);
    longer.putLast(saver, sequence);
    return new SaveHistory(longer);
  }

  /// Whether this training was continued from a checkpoint; true also if the checkpoint has no
  /// history.
  ///
  /// @param other the checkpoint's history
  boolean contains(SaveHistory other) {
    if (other.saves.isEmpty()) {
      return true;
    }
    Map.Entry<String, Long> save = other.saves.lastEntry();
    return saves.getOrDefault(save.getKey(), Long.MIN_VALUE) >= save.getValue();
  }

  /// Whether neither of two trainings was continued from the other's checkpoint.
  boolean partedFrom(SaveHistory other) {
    return !saves.isEmpty() && !contains(other) && !other.contains(this);
  }
}
