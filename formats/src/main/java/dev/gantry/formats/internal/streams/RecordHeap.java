// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.formats.internal.examples.RawRecord;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Copies of records in one piece of memory, from which any of them may be removed. New ones are put
/// behind the others; at the end of the memory those that are left are moved together. A third of it
/// is kept free for that, so each byte is moved twice on average at most. Not thread-safe.
final class RecordHeap implements AutoCloseable {
  private static final long FIRST_BYTES = 1 << 20;

  private HostSlab slab = HostSlab.allocate(FIRST_BYTES);

  /// In the order of their places; some may have been removed.
  private List<Entry> entries = new ArrayList<>();

  private long end;
  private long bytes;

  /// A record that is kept.
  static final class Entry {
    private final RawRecord source;
    private final long length;
    private long start;
    private boolean removed;

    private Entry(RawRecord record, long start) {
      source = new RawRecord(record.file(), record.number(), record.offset(), MemorySegment.NULL);
      length = record.data().byteSize();
      this.start = start;
    }
  }

  Entry add(RawRecord record) {
    long length = record.data().byteSize();
    if (length > slab.size() - end) {
      makeRoom(length);
    }
    Entry entry = new Entry(record, end);
    MemorySegment.copy(record.data(), 0, slab.segment(), end, length);
    entries.add(entry);
    end += length;
    bytes += length;
    return entry;
  }

  void remove(Entry entry) {
    entry.removed = true;
    bytes -= entry.length;
  }

  /// Removes all records.
  void clear() {
    entries.clear();
    end = 0;
    bytes = 0;
  }

  /// The bytes of all that are kept.
  long bytes() {
    return bytes;
  }

  /// @return the record, whose data stays where it is until the next one is added
  RawRecord record(Entry entry) {
    RawRecord source = entry.source;
    return new RawRecord(
        source.file(),
        source.number(),
        source.offset(),
        slab.segment().asSlice(entry.start, entry.length));
  }

  private void makeRoom(long length) {
    long needed = (bytes + length) / 2 * 3 + 3;
    HostSlab before = slab;
    HostSlab after =
        needed > before.size()
            ? HostSlab.allocate(Math.max(needed, Math.min(2 * before.size(), 2 * needed)))
            : before;
    List<Entry> kept = new ArrayList<>();
    long at = 0;
    for (Entry entry : entries) {
      if (!entry.removed) {
        MemorySegment.copy(before.segment(), entry.start, after.segment(), at, entry.length);
        entry.start = at;
        at += entry.length;
        kept.add(entry);
      }
    }
    entries = kept;
    end = at;
    if (after != before) {
      slab = after;
      before.release();
    }
  }

  @Override
  public void close() {
    slab.release();
  }
}
