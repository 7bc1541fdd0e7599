package dev.gantry.formats.tfrecord.index;

/// What [TfRecordIndex#open] finds.
public sealed interface FoundIndex {
  /// An index of the file as it is now; whoever gets it closes it.
  record Usable(TfRecordIndex index) implements FoundIndex {}

  /// None, or one of the file as it was, or of a version that is not known here: the file is to be
  /// indexed again, or streamed.
  ///
  /// @param reason in words, with the name of the index
  record Unusable(String reason) implements FoundIndex {}
}
