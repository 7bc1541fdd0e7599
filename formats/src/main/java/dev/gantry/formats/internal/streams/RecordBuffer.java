package dev.gantry.formats.internal.streams;

import dev.gantry.core.MisuseException;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.formats.internal.examples.RawRecord;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Copies of a batch's records, in memory that is used again. For one thread until it is filled;
/// then for any.
final class RecordBuffer {
  private static final long FIRST_BYTES = 1 << 20;

  private final long mostBytes;
  private HostSlab slab;
  private long used;

  /// Of each record, where it begins and ends and where it is from.
  private final List<Entry> entries = new ArrayList<>();

  private record Entry(long start, long bytes, Path file, long number, long offset) {}

  /// @param mostBytes that the records may have together
  RecordBuffer(long mostBytes) {
    this.mostBytes = mostBytes;
    slab = HostSlab.allocate(Math.min(FIRST_BYTES, mostBytes));
  }

  void clear() {
    used = 0;
    entries.clear();
  }

  /// Keeps a copy of a record.
  ///
  /// @throws MisuseException if there is no room for it
  void add(RawRecord record) {
    MemorySegment data = record.data();
    long end = used + data.byteSize();
    if (end > mostBytes) {
      throw new MisuseException(
          record.file()
              + ": with record "
              + record.number()
              + " the batch's records have "
              + end
              + " bytes, more than the "
              + mostBytes
              + " of TfRecordOptions.withMostBatchBytes; allow for more, or make batches smaller");
    }
    if (end > slab.size()) {
      grow(end);
    }
    MemorySegment.copy(data, 0, slab.segment(), used, data.byteSize());
    entries.add(new Entry(used, data.byteSize(), record.file(), record.number(), record.offset()));
    used = end;
  }

  private void grow(long needed) {
    HostSlab larger = HostSlab.allocate(Math.min(mostBytes, Math.max(needed, 2 * slab.size())));
    MemorySegment.copy(slab.segment(), 0, larger.segment(), 0, used);
    slab.release();
    slab = larger;
  }

  int size() {
    return entries.size();
  }

  RawRecord record(int i) {
    Entry entry = entries.get(i);
    return new RawRecord(
        entry.file(),
        entry.number(),
        entry.offset(),
        slab.segment().asSlice(entry.start(), entry.bytes()));
  }

  void free() {
    slab.release();
  }
}
