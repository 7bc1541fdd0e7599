// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

import java.nio.file.Path;
import java.util.SequencedMap;

/// A complete checkpoint on the disk. Thread-safe.
public interface StoredCheckpoint {
  /// The folder that holds its files.
  Path folder();

  /// The training step at which it was saved.
  long step();

  /// The number of the save among all saves into its parent folder, from 1.
  long sequence();

  /// The metrics that were saved with it, by name. Values may be NaN or infinite.
  SequencedMap<String, Double> metrics();

  /// Whether no parameter had a value that is NaN or infinite when it was saved.
  boolean isFinite();
}
