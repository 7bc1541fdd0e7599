// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.checkpoint;

import dev.gantry.core.Transport;
import java.time.Duration;
import java.util.Map;

/// The result of a save that did not fail.
public sealed interface SaveOutcome {
  /// The checkpoint is on the disk.
  ///
  /// @param bytes the size of the tensors' files; the manifest is not counted
  /// @param elapsed the time from the first file's opening until these files are durable under their names
  /// @param bytesByTransport how many of these bytes each transport wrote
  record Saved(
      StoredCheckpoint checkpoint,
      long bytes,
      Duration elapsed,
      Map<Transport, Long> bytesByTransport)
      implements SaveOutcome {
    public Saved {
      bytesByTransport = Map.copyOf(bytesByTransport);
    }
  }

  /// The save was skipped because another one was being written.
  ///
  /// @param step the training step that was not saved
  record Skipped(long step) implements SaveOutcome {}
}
