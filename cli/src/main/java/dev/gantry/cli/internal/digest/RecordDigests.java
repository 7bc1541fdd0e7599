// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.digest;

import dev.gantry.cli.internal.input.RecordFiles;
import dev.gantry.cli.internal.output.Json;
import dev.gantry.cli.internal.output.Progress;
import dev.gantry.cli.internal.output.Report;
import dev.gantry.cli.internal.output.Table;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.List;

/// Reports the SHA-256 of each record's data, for one or several TFRecord files in their order.
public final class RecordDigests implements Report {
  private final List<Location> files;
  private final List<Long> records = new ArrayList<>();
  private final DigestSpool digests = new DigestSpool();
  private long bytes;

  private RecordDigests(List<Location> files) {
    this.files = files;
  }

  /// Reads and checks all records.
  public static RecordDigests of(GantrySession session, List<Location> files) {
    RecordDigests result = new RecordDigests(files);
    return Cleanup.orUndo(
        () -> {
          result.read(session);
          return result;
        },
        result::close);
  }

  private void read(GantrySession session) {
    MessageDigest sha256 = TensorDigests.sha256();
    try (Progress bar = Progress.ofRecords("digest", files)) {
      for (Location file : files) {
        try (TfRecordReader reader = RecordFiles.open(session, file)) {
          while (reader.next()) {
            sha256.update(reader.record().asByteBuffer());
            digests.add(sha256.digest());
            bar.at(reader);
          }
          records.add(reader.statistics().records());
          bytes += reader.statistics().bytes();
        }
      }
    }
  }

  /// Prints each digest with the record's number in its file, and with the file's name if there
  /// are several files.
  @Override
  public void print(PrintWriter out) {
    Names names = new Names();
    try {
      digests.forEach(digest -> out.println(digest + "  " + names.next()));
    } catch (IOException e) {
      throw Spool.failed("read", e);
    }
  }

  /// Returns the names of all records, one per call.
  private final class Names {
    private int file;
    private long number;

    String next() {
      while (number == records.get(file)) {
        file++;
        number = 0;
      }
      String prefix = files.size() == 1 ? "" : Table.line(files.get(file).fileName() + ":");
      return prefix + number++;
    }
  }

  @Override
  public Object json() {
    return Json.object().with("records", digests).with("bytes", bytes);
  }

  @Override
  public void close() {
    digests.close();
  }
}
