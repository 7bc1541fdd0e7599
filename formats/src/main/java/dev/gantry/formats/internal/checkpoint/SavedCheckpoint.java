// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.formats.checkpoint.SaveOutcome;

/// A checkpoint that is on the disk, and how it came there.
///
/// @param report of the tensors' files; the manifest is not in it
public record SavedCheckpoint(CheckpointFolder checkpoint, WriteReport report) {
  public SaveOutcome.Saved outcome() {
    return new SaveOutcome.Saved(
        checkpoint, report.bytes(), report.elapsed(), report.bytesByTransport());
  }
}
