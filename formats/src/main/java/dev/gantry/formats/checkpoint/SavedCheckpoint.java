package dev.gantry.formats.checkpoint;

import dev.gantry.core.internal.commit.WriteReport;

/// A checkpoint that is on the disk, and how it came there.
///
/// @param report of the tensors' files; the manifest is not in it
public record SavedCheckpoint(StoredCheckpoint checkpoint, WriteReport report) {}
