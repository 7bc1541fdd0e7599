// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.internal.examples.RawRecord;
import java.util.ArrayList;
import java.util.List;

/// Copies of a batch's records, in memory that is used again. For one thread until it is filled;
/// then for any.
final class RecordBuffer {
  private final long mostBytes;
  private final RecordHeap heap = new RecordHeap();
  private final List<RecordHeap.Entry> entries = new ArrayList<>();

  /// @param mostBytes that the records may have together
  RecordBuffer(long mostBytes) {
    this.mostBytes = mostBytes;
  }

  void clear() {
    heap.clear();
    entries.clear();
  }

  /// Keeps a copy of a record.
  ///
  /// @throws MisuseException if there is no room for it
  void add(RawRecord record) {
    long bytes = heap.bytes() + record.data().byteSize();
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

  RawRecord record(int i) {
    return heap.record(entries.get(i));
  }

  void free() {
    heap.close();
  }
}
