package dev.gantry.cli;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;

/// How commands read TFRecord: as it is compressed, every checksum, and no record too long.
final class RecordFiles {
  static final TfRecordOptions OPTIONS =
      TfRecordOptions.defaults().withMostRecordBytes(TfRecordOptions.MOST_RECORD_BYTES);

  private RecordFiles() {}

  static TfRecordReader open(GantrySession session, Path file) {
    return TfRecordReader.open(session, file, OPTIONS);
  }
}
