// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import dev.gantry.core.Location;
import dev.gantry.formats.tfrecord.Compression;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// A [Progress] of files that are read record by record, one after the other. The total of
/// compressed and of remote files is unknown.
public final class RecordProgress implements AutoCloseable {
  private static final long UNKNOWN = -1;

  private final Progress bar;
  private final List<Location> files;

  /// The offset that each file would have if all files were one, and the end of the last file.
  private final List<Long> starts = new ArrayList<>();

  private int file;
  private boolean known = true;

  public RecordProgress(String task, List<Location> files) {
    this.files = files;
    long total = 0;
    for (Location each : files) {
      starts.add(total);
      total += each instanceof Location.Local(Path file, _) ? size(file) : 0;
      known &= each instanceof Location.Local;
    }
    starts.add(total);
    bar = new Progress(task, known ? total : UNKNOWN);
  }

  private static long size(Path file) {
    try {
      return Files.size(file);
    } catch (IOException e) {
      throw new UncheckedIOException(file + " has no size", e);
    }
  }

  /// Moves the bar to a reader's position. Readers of the files must come in the files' order.
  public void at(TfRecordReader reader) {
    while (!files.get(file).equals(reader.location())) {
      file++;
    }
    known &= reader.compression() == Compression.NONE;
    bar.onProgress(starts.get(file) + reader.offset(), known ? starts.getLast() : UNKNOWN);
  }

  @Override
  public void close() {
    bar.close();
  }
}
