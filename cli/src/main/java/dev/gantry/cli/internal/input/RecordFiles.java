// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.input;

import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.nio.file.Path;

/// How commands read TFRecord: as it is compressed, every checksum, and no record too long.
public final class RecordFiles {
  public static final TfRecordOptions OPTIONS =
      TfRecordOptions.defaults().withMostRecordBytes(TfRecordOptions.MOST_RECORD_BYTES);

  private RecordFiles() {}

  public static TfRecordReader open(GantrySession session, Path file) {
    return TfRecordReader.open(session, file, OPTIONS);
  }
}
