// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.streams;

import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.formats.internal.examples.RawRecord;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Keeps records, any of which may be removed. It keeps a record as a copy in memory, or as a
/// share of its open file.
///
/// All copies lie in one slab. A new copy goes behind the last one; at the end of the slab, the
/// remaining copies are moved together. A third of the slab is kept free, so that each byte is
/// moved at most twice on average. Not thread-safe.
final class RecordHeap implements AutoCloseable {
  private static final long FIRST_BYTES = 1 << 20;

  /// The slab of the copies; null before the first one.
  private @Nullable HostSlab slab;

  /// The copies in the order of their offsets; some may be removed already.
  private List<Entry> entries = new ArrayList<>();

  private long end;
  private long bytes;

  /// A record that is kept.
  static final class Entry {
    private final Location file;
    private final long number;
    private final long offset;
    private final long length;
    private final @Nullable SharedReader shared;
    private long start;
    private boolean removed;

    private Entry(StreamRecord record) {
      file = record.file();
      number = record.number();
      offset = record.offset();
      length = record.length();
      shared = record.shared();
    }

    long number() {
      return number;
    }

    /// The file offset of the record's header.
    long offset() {
      return offset;
    }

    /// The length of the record's data, in bytes.
    long length() {
      return length;
    }

    /// The file to read the record from; null if a copy of its data is kept.
    @Nullable SharedReader shared() {
      return shared;
    }

    /// @param data the record's data in memory
    RawRecord with(MemorySegment data) {
      return new RawRecord(file, number, offset, data);
    }
  }

  Entry add(StreamRecord record) {
    Entry entry = new Entry(record);
    if (entry.shared != null) {
      entry.shared.retain();
    } else {
      copy(record.data(), entry);
    }
    bytes += entry.length;
    return entry;
  }

  private void copy(MemorySegment data, Entry entry) {
    HostSlab memory = slab;
    if (memory == null || entry.length > memory.size() - end) {
      memory = makeRoom(entry.length);
    }
    entry.start = end;
    MemorySegment.copy(data, 0, memory.segment(), end, entry.length);
    entries.add(entry);
    end += entry.length;
  }

  /// Removes a record. Idempotent.
  void remove(Entry entry) {
    if (entry.removed) {
      return;
    }
    entry.removed = true;
    bytes -= entry.length;
    if (entry.shared != null) {
      entry.shared.release();
    }
  }

  /// Removes all records at once.
  void clear(Collection<Entry> all) {
    all.forEach(this::remove);
    entries.clear();
    end = 0;
  }

  /// The bytes of all kept records.
  long bytes() {
    return bytes;
  }

  /// The data of a kept copy; valid until the next record is added.
  MemorySegment data(Entry entry) {
    return slab == null ? MemorySegment.NULL : slab.segment().asSlice(entry.start, entry.length);
  }

  /// Returns a kept record as a stream's record; its data is valid as long as the result of
  /// [#data].
  StreamRecord record(Entry entry) {
    return new StreamRecord(
        entry.file,
        entry.number,
        entry.offset,
        entry.length,
        entry.shared == null ? data(entry) : MemorySegment.NULL,
        entry.shared);
  }

  private HostSlab makeRoom(long length) {
    HostSlab before = slab;
    if (before == null) {
      slab = HostSlab.allocate(Math.max(FIRST_BYTES, length));
      return slab;
    }
    long copied =
        entries.stream().filter(entry -> !entry.removed).mapToLong(entry -> entry.length).sum();
    long needed = (copied + length) / 2 * 3 + 3;
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
    return after;
  }

  /// Frees the memory. It releases no shares of files; only [#remove] does.
  @Override
  public void close() {
    HostSlab held = slab;
    slab = null;
    if (held != null) {
      held.release();
    }
  }
}
