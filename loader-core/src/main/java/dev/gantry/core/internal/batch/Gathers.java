// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Objects;

/// Ranges of files, and the offsets in the slot to which their bytes go. File offsets and slot
/// offsets need no alignment. The gathers are kept in columns, since a batch of short samples has
/// thousands of gathers. Immutable.
public final class Gathers {
  /// No gathers, for a batch that is read by its reads.
  public static final Gathers NONE = new Builder(0).build();

  private static final int LEAST_ROOM = 8;

  private final int count;
  private final int[] fileNumbers;
  private final long[] offsets;
  private final long[] lengths;
  private final long[] slotOffsets;
  private final List<Location> files;
  private final long[] ends;
  private final long bytes;

  private Gathers(Builder builder) {
    this.count = builder.count;
    this.fileNumbers = builder.fileNumbers;
    this.offsets = builder.offsets;
    this.lengths = builder.lengths;
    this.slotOffsets = builder.slotOffsets;
    this.files = List.copyOf(builder.files);
    this.ends = builder.ends;
    this.bytes = builder.bytes;
  }

  /// Collects gathers. Not thread-safe; [#build] may be called once.
  public static final class Builder {
    private final List<Location> files = new ArrayList<>();

    /// The numbers of files by their objects: a location takes long to hash, and a dataset has one object for each file.
    private final IdentityHashMap<Location, Integer> numbers = new IdentityHashMap<>();

    // One array for all columns would be so large that the garbage collector gives it a region of
    // its own, which takes longer than the plan.
    private int[] fileNumbers;
    private long[] offsets;
    private long[] lengths;
    private long[] slotOffsets;
    private long[] ends = {};
    private int count;
    private long bytes;

    /// @param expected the expected number of gathers; more may be added
    public Builder(int expected) {
      fileNumbers = new int[expected];
      offsets = new long[expected];
      lengths = new long[expected];
      slotOffsets = new long[expected];
    }

    /// Adds a range of a file.
    ///
    /// @param slotOffset where the bytes go, in bytes from the slot's start
    /// @throws MisuseException if `offset` is negative, or `length` is not positive
    public void add(Location file, long offset, long length, long slotOffset) {
      if (offset < 0 || length <= 0) {
        throw new MisuseException("gather " + length + " bytes at " + offset + " of " + file);
      }
      if (count == offsets.length) {
        int room = Math.max(2 * count, LEAST_ROOM);
        fileNumbers = Arrays.copyOf(fileNumbers, room);
        offsets = Arrays.copyOf(offsets, room);
        lengths = Arrays.copyOf(lengths, room);
        slotOffsets = Arrays.copyOf(slotOffsets, room);
      }
      Integer known = numbers.get(file);
      int number = known == null ? newNumber(file) : known;
      fileNumbers[count] = number;
      offsets[count] = offset;
      lengths[count] = length;
      slotOffsets[count] = slotOffset;
      ends[number] = Math.max(ends[number], Math.addExact(offset, length));
      bytes += length;
      count++;
    }

    private int newNumber(Location file) {
      int number = files.indexOf(file);
      if (number < 0) {
        number = files.size();
        files.add(file);
        ends = Arrays.copyOf(ends, files.size());
      }
      numbers.put(file, number);
      return number;
    }

    public Gathers build() {
      return new Gathers(this);
    }
  }

  public int count() {
    return count;
  }

  /// Returns the number of bytes of all gathers together.
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
    return fileNumbers[Objects.checkIndex(gather, count)];
  }

  public long offset(int gather) {
    return offsets[Objects.checkIndex(gather, count)];
  }

  public long length(int gather) {
    return lengths[Objects.checkIndex(gather, count)];
  }

  public long slotOffset(int gather) {
    return slotOffsets[Objects.checkIndex(gather, count)];
  }
}
