// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.files;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.session.GantrySession;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.stream.IntStream;

/// Reads values of data files for fields that the CPU writes, and keeps the files open. Thread-safe, but [#close]
/// must come after the last read.
public final class ValueFiles implements AutoCloseable {
  /// The most files that stay open.
  private static final int MAX_OPEN = 256;

  /// The smallest memory for a read's values, in bytes, so that all reads of short values ask for
  /// the same size.
  private static final long LEAST_BYTES = 64 << 10;

  private final GantrySession session;
  private final List<Location> data;
  private final KnownFiles known;
  private final AtomicReferenceArray<SourceFile> open;
  private final AtomicInteger kept = new AtomicInteger();

  /// @param data the data files, in order
  /// @param known compares the identities of the files with those of the indexed files
  public ValueFiles(GantrySession session, List<Location> data, KnownFiles known) {
    this.session = session;
    this.data = List.copyOf(data);
    this.known = known;
    this.open = new AtomicReferenceArray<>(data.size());
  }

  /// Receives one value after the other.
  @FunctionalInterface
  public interface Sink {
    /// @param number the value's number among those that are read
    /// @param value the bytes, valid during the call
    void accept(int number, MemorySegment value);
  }

  /// Reads values of one data file.
  ///
  /// @param places the extents of the values in the file
  public void read(int file, List<Extent> places, Sink sink) {
    long most = places.stream().mapToLong(Extent::length).max().orElse(0);
    HostSlab memory = HostSlab.allocate(Math.max(LEAST_BYTES, most));
    SourceFile source = Cleanup.orUndo(() -> file(file), memory::release);
    try {
      for (int i = 0; i < places.size(); i++) {
        Extent place = places.get(i);
        MemorySegment value = memory.segment().asSlice(0, place.length());
        if (place.length() > 0) {
          boolean _ = source.read(value, place.offset(), place.length(), false);
        }
        sink.accept(i, value);
      }
    } finally {
      memory.release();
      if (open.get(file) != source) {
        source.close();
      }
    }
  }

  /// Returns the open file. If the file is not kept in [#open], the caller must close it.
  private SourceFile file(int number) {
    SourceFile there = open.get(number);
    if (there != null) {
      return there;
    }
    return Cleanup.orUndo(
        () -> session.openFile(data.get(number)),
        file -> {
          known.check(data.get(number), file.identity());
          if (kept.incrementAndGet() > MAX_OPEN || !open.compareAndSet(number, null, file)) {
            kept.decrementAndGet();
          }
          return file;
        },
        SourceFile::close);
  }

  @Override
  public void close() {
    Cleanup.forEach(
        IntStream.range(0, open.length()).mapToObj(open::get).filter(Objects::nonNull).toList(),
        SourceFile::close);
  }
}
