// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;

/// Ranges of files, and where in the slot their bytes go. File offsets and slot offsets need no alignment. The
/// gathers are kept in columns of one array, since a batch of short samples has thousands. Immutable.
public final class Gathers {
  /// No gathers, for a batch that is read otherwise.
  public static final Gathers NONE = new Builder(0).build();

  // The columns of a gather: its file's number, the offset in that file, the length, and the slot
  // offset.
  private static final int WIDTH = 4;
  private static final int OFFSET = 1;
  private static final int LENGTH = 2;
  private static final int TARGET = 3;

  private final int count;
  private final long[] columns;
  private final List<Location> files;
  private final long[] ends;
  private final long bytes;

  private Gathers(Builder builder) {
    this.count = builder.count;
    this.columns = builder.columns;
    this.files = List.copyOf(builder.files);
    this.ends = builder.ends;
    this.bytes = builder.bytes;
  }

  /// Collects gathers. Not thread-safe; [#build] may be called once.
  public static final class Builder {
    private final List<Location> files = new ArrayList<>();

    /// The numbers of files by their objects: a location takes long to hash, and a dataset has one object for each file.
    private final IdentityHashMap<Location, Integer> numbers = new IdentityHashMap<>();

    private long[] columns;
    private long[] ends = {};
    private int count;
    private long bytes;

    /// @param expected how many gathers there will be; more may come
    public Builder(int expected) {
      columns = new long[expected * WIDTH];
    }

    /// Adds a range of a file.
    ///
    /// @param slotOffset where the bytes go, in bytes from the slot's start
    /// @throws MisuseException if `offset` is negative, or `length` is not positive
    public void add(Location file, long offset, long length, long slotOffset) {
      if (offset < 0 || length <= 0) {
        throw new MisuseException("gather " + length + " bytes at " + offset + " of " + file);
      }
      int at = count * WIDTH;
      if (at == columns.length) {
        columns = Arrays.copyOf(columns, Math.max(2 * at, 8 * WIDTH));
      }
      int number = numbers.computeIfAbsent(file, this::newNumber);
      columns[at] = number;
      columns[at + OFFSET] = offset;
      columns[at + LENGTH] = length;
      columns[at + TARGET] = slotOffset;
      ends[number] = Math.max(ends[number], Math.addExact(offset, length));
      bytes += length;
      count++;
    }

    private int newNumber(Location file) {
      int known = files.indexOf(file);
      if (known >= 0) {
        return known;
      }
      files.add(file);
      ends = Arrays.copyOf(ends, files.size());
      return files.size() - 1;
    }

    public Gathers build() {
      return new Gathers(this);
    }
  }

  public int count() {
    return count;
  }

  /// Returns how many bytes all gathers bring together.
  public long bytes() {
    return bytes;
  }

  /// Returns the files, each once.
  public List<Location> files() {
    return files;
  }

  /// Returns the offset just past the last byte that is gathered from a file.
  ///
  /// @param file the file's index in [#files]
  public long end(int file) {
    return ends[file];
  }

  /// Returns the index in [#files] of a gather's file.
  public int file(int gather) {
    return (int) columns[Objects.checkIndex(gather, count) * WIDTH];
  }

  public long offset(int gather) {
    return columns[Objects.checkIndex(gather, count) * WIDTH + OFFSET];
  }

  public long length(int gather) {
    return columns[Objects.checkIndex(gather, count) * WIDTH + LENGTH];
  }

  public long slotOffset(int gather) {
    return columns[Objects.checkIndex(gather, count) * WIDTH + TARGET];
  }
}
