// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.formats.tfrecord.CorruptionPolicy;
import dev.gantry.formats.tfrecord.SkippedFaults;
import dev.gantry.formats.tfrecord.TfRecordOptions;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.util.concurrent.atomic.AtomicInteger;

/// An open file that a stream shares with the batches whose records are still to be read from it.
/// The last holder of a share closes the file. Other threads than the stream's may only take and
/// release shares and read records.
///
/// The stream reads the records' headers; the threads that decode the records read their data and
/// compare the checksums. The stream itself reads and checks the data if the record is short, the
/// file is remote or compressed, faults may be skipped, or too many files would stay open.
final class SharedReader {
  /// The most files that batches or a shuffle buffer keep open after the stream has left them.
  private static final int MAX_LEFT_OPEN = 64;

  /// The longest record that is cheaper to copy at once than to read later.
  private static final int SHORT_BYTES = 2 << 10;

  /// The chunk of a stream's reads: enough for many short records.
  private static final int CHUNK_BYTES = 256 << 10;

  private final TfRecordReader reader;
  private final int mostBytes;
  private final AtomicInteger open;
  private final AtomicInteger shares = new AtomicInteger(1);

  /// @param mostBytes the longest record that the stream itself reads
  private SharedReader(TfRecordReader reader, int mostBytes, AtomicInteger open) {
    this.reader = reader;
    this.mostBytes = mostBytes;
    this.open = open;
    open.incrementAndGet();
  }

  /// @param open counts the files that are open
  /// @param atOnce how many files the stream has open at once
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
            && open.get() < atOnce + MAX_LEFT_OPEN;
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

  /// Takes another share; call it only while holding one.
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
