package dev.gantry.formats.internal.streams;

/// Where [Records] stand between two of them.
sealed interface RecordCursor permits StreamCursor, ShuffledCursor {
  /// Without spaces.
  String toText();
}
