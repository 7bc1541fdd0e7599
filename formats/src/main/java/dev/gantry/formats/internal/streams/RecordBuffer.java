// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.formats.internal.examples.RecordSink;
import dev.gantry.formats.tfrecord.TfRecordReader;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/// A batch's records: each is a copy in reused memory, or an offset in a file. For one thread
/// while it is filled, and then for any thread.
final class RecordBuffer {
  /// How many bytes of neighbouring records are read at a time: few enough to stay in a core's cache until
  /// they are checked and decoded.
  private static final int RUN_BYTES = 256 << 10;

  private final long mostBytes;
  private final RecordHeap heap = new RecordHeap();
  private final List<RecordHeap.Entry> entries = new ArrayList<>();

  /// @param mostBytes the most bytes of all records together
  RecordBuffer(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  void clear() {
    heap.clear(entries);
    entries.clear();
  }

  /// Keeps a record.
  ///
  /// @throws MisuseException if there is no room for the record
  void add(StreamRecord record) {
    long bytes = heap.bytes() + record.length();
    if (bytes > mostBytes) {
      throw new MisuseException(
          record.file()
              + ": with record "
              + record.number()
              + " the batch's records have "
              + bytes
              + " bytes, more than the "
              + mostBytes
              + " of TfRecordOptions.withMostBatchBytes; allow for more, or make batches smaller");
    }
    entries.add(heap.add(record));
  }

  int size() {
    return entries.size();
  }

  /// Gives the records from `from` (inclusive) to `to` (exclusive) to `sink`, each with its data, which is
  /// valid during the call. Records that are still in files are read into `scratch`, and their checksums
  /// are compared.
  ///
  /// @throws MalformedFileException if a record's checksum is wrong
  /// @throws dev.gantry.core.TransferException if a file cannot be read
  void read(int from, int to, Scratch scratch, RecordSink sink) {
    int at = from;
    while (at < to) {
      RecordHeap.Entry entry = entries.get(at);
      SharedReader shared = entry.shared();
      if (shared == null) {
        sink.accept(entry.with(heap.data(entry)), at);
        at++;
      } else if (isReadAround(shared, at, scratch, sink)) {
        at++;
      } else {
        int end = runEnd(at, to, shared);
        read(shared, at, end, scratch, sink);
        at = end;
      }
    }
  }

  /// Reads one record, and reads one part of it straight into memory that the sink gives.
  ///
  /// @return false if the sink wants no part of the record elsewhere, if its guess of the part
  ///     was wrong, or if the record has a fault. The caller then reads the whole record, which
  ///     throws the fault if there is one
  private boolean isReadAround(SharedReader shared, int number, Scratch scratch, RecordSink sink) {
    RecordHeap.Entry entry = entries.get(number);
    Optional<RecordSink.Straight> straight = sink.straight(number, entry.length());
    if (straight.isEmpty()) {
      return false;
    }
    RecordSink.Straight part = straight.get();
    MemorySegment whole = scratch.memory(end(entry) - entry.offset());
    long from = TfRecordReader.HEADER_BYTES + part.start();
    List<MemorySegment> pieces =
        List.of(
            whole.asSlice(0, from), part.memory(), whole.asSlice(from + part.memory().byteSize()));
    try {
      shared.reader().readRecord(position(entry), pieces);
    } catch (MalformedFileException _) {
      return false;
    }
    MemorySegment data = whole.asSlice(TfRecordReader.HEADER_BYTES, entry.length());
    return sink.acceptAround(entry.with(data), number, part);
  }

  /// Returns the end of the neighbouring records from `from` on that one read covers.
  private int runEnd(int from, int to, SharedReader shared) {
    long start = entries.get(from).offset();
    long end = end(entries.get(from));
    int after = from + 1;
    while (after < to) {
      RecordHeap.Entry next = entries.get(after);
      if (next.shared() != shared || next.offset() != end || end(next) - start > RUN_BYTES) {
        break;
      }
      end = end(next);
      after++;
    }
    return after;
  }

  private void read(SharedReader shared, int from, int to, Scratch scratch, RecordSink sink) {
    RecordHeap.Entry first = entries.get(from);
    MemorySegment run = scratch.memory(end(entries.get(to - 1)) - first.offset());
    shared.reader().readRecords(position(first), run);
    for (int i = from; i < to; i++) {
      RecordHeap.Entry entry = entries.get(i);
      long data = entry.offset() - first.offset() + TfRecordReader.HEADER_BYTES;
      sink.accept(entry.with(run.asSlice(data, entry.length())), i);
    }
  }

  private static TfRecordReader.Position position(RecordHeap.Entry entry) {
    return new TfRecordReader.Position(entry.offset(), entry.number());
  }

  /// The offset in its file at which a record ends.
  private static long end(RecordHeap.Entry entry) {
    return entry.offset() + entry.length() + TfRecordReader.FRAMING_BYTES;
  }

  void free() {
    clear();
    heap.close();
  }

  /// A thread's reused memory for reads.
  static final class Scratch {
    private HostSlab slab = HostSlab.allocate(RUN_BYTES);

    MemorySegment memory(long bytes) {
      if (bytes > slab.size()) {
        HostSlab larger = HostSlab.allocate(bytes);
        slab.release();
        slab = larger;
      }
      return slab.segment().asSlice(0, bytes);
    }

    long bytes() {
      return slab.size();
    }

    void free() {
      slab.release();
    }
  }
}
