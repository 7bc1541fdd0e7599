package dev.gantry.formats.tfrecord;

import dev.gantry.core.MisuseException;

/// Between two records of a file.
///
/// @param offset of the next record's header, in bytes from the start of the file, or of what it
///     decompresses to
/// @param number of the next record, from 0
public record TfRecordPosition(long offset, long number) {
  /// Before the first record.
  public static final TfRecordPosition START = new TfRecordPosition(0, 0);

  public TfRecordPosition {
    if (offset < 0 || number < 0) {
      throw new MisuseException("record " + number + " at offset " + offset);
    }
  }
}
