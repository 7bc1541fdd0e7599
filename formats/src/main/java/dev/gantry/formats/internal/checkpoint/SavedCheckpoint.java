// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.formats.checkpoint.SaveOutcome;

/// A checkpoint that was just saved, and the report of its write.
///
/// @param report covers the tensors' files, not the manifest
public record SavedCheckpoint(CheckpointFolder checkpoint, WriteReport report) {
  public SaveOutcome.Saved outcome() {
    return new SaveOutcome.Saved(
        checkpoint, report.bytes(), report.elapsed(), report.bytesByTransport());
  }
}
