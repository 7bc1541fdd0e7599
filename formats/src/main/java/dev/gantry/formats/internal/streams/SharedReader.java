// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.SkippedFaults;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.concurrent.atomic.AtomicInteger;

/// An open file of a stream, and of the batches whose records are still to be read from it. The last
/// one that leaves it closes it. All but the shares is for the stream's thread.
///
/// The stream goes from header to header, and leaves the records for the threads that decode them to
/// read and check. It does so itself with short records, where the file is remote or compressed, where a fault
/// may have to be passed over, and where too many files would stay open.
final class SharedReader {
  /// Files that streams have left and batches or a shuffle buffer hold.
  private static final int MOST_LEFT_OPEN = 64;

  /// Records up to this length cost less to read and copy at once than to come back to.
  private static final int SHORT_BYTES = 2 << 10;

  /// Enough for many short records.
  private static final int CHUNK_BYTES = 256 << 10;

  private final TfRecordReader reader;
  private final int mostBytes;
  private final AtomicInteger open;
  private final AtomicInteger shares = new AtomicInteger(1);

  /// @param mostBytes of a record that the stream itself reads
  private SharedReader(TfRecordReader reader, int mostBytes, AtomicInteger open) {
    this.reader = reader;
    this.mostBytes = mostBytes;
    this.open = open;
    open.incrementAndGet();
  }

  /// @param open counts the files that are open
  /// @param atOnce how many files the stream reads in turn
  static SharedReader open(
      GantrySession session,
      Location file,
      TfRecordOptions options,
      TfRecordReader.Position from,
      SkippedFaults skipped,
      AtomicInteger open,
      int atOnce) {
    boolean byHeader =
        file instanceof Location.Local
            && options.corruption() instanceof CorruptionPolicy.Fail
            && open.get() < atOnce + MOST_LEFT_OPEN;
    int chunk = Math.min(options.chunkBytes(), CHUNK_BYTES);
    TfRecordReader reader =
        TfRecordReader.open(
            session, file, byHeader ? options.withChunkBytes(chunk) : options, from, skipped);
    return new SharedReader(reader, byHeader ? SHORT_BYTES : Integer.MAX_VALUE, open);
  }

  boolean next() {
    return reader.next(mostBytes);
  }

  StreamRecord record() {
    return StreamRecord.of(this);
  }

  TfRecordReader reader() {
    return reader;
  }

  /// For one who has a share.
  void retain() {
    shares.incrementAndGet();
  }

  void release() {
    if (shares.decrementAndGet() == 0) {
      open.decrementAndGet();
      reader.close();
    }
  }
}
