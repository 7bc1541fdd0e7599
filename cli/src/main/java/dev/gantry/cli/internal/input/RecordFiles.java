// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;

/// Opens TFRecord files for all commands: the reader detects the compression, compares every
/// checksum, and accepts records of any length that the format allows.
public final class RecordFiles {
  public static final TfRecordOptions OPTIONS =
      TfRecordOptions.defaults().withMostRecordBytes(TfRecordOptions.MAX_RECORD_BYTES);

  private RecordFiles() {}

  public static TfRecordReader open(GantrySession session, Location file) {
    return TfRecordReader.open(session, file, OPTIONS);
  }
}
