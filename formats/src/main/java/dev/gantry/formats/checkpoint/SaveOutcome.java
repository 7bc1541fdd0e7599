package dev.gantry.formats.checkpoint;

/// What became of a save that did not fail.
public sealed interface SaveOutcome {
  /// It is on the disk.
  record Saved(SavedCheckpoint checkpoint) implements SaveOutcome {}

  /// It was not made, since another was being written.
  ///
  /// @param step that was not saved
  record Skipped(long step) implements SaveOutcome {}
}
