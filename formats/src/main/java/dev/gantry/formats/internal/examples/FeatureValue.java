// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// One feature of a record, or one step of its feature list: its kind, and where its values lie in
/// the record. Readers fill it again for every record. Not thread-safe.
public final class FeatureValue {
  private static final int VARINT_BITS = 7;
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private MemorySegment record = MemorySegment.NULL;
  private FeatureSpec.@Nullable Kind kind;
  private long count;
  private boolean unpacked;

  /// The start and the length of each piece that is not empty; strings of bytes are a piece each.
  private long[] pieces = new long[2];

  private int used;

  /// The integers that a reader has decoded; they are in no pieces.
  private long[] integers = {};

  /// Forgets all values.
  void clear() {
    begin(MemorySegment.NULL, null);
  }

  /// Begins a list in a record, which has no values yet.
  void begin(MemorySegment bytes, FeatureSpec.@Nullable Kind of) {
    record = bytes;
    kind = of;
    count = 0;
    unpacked = false;
    used = 0;
  }

  /// Adds values that lie end to end in the record.
  ///
  /// @param values how many; of bytes, 1
  void add(long start, long length, long values) {
    if (used == pieces.length) {
      pieces = Arrays.copyOf(pieces, 2 * used);
    }
    pieces[used++] = start;
    pieces[used++] = length;
    count += values;
  }

  /// Adds one float of a list that is not packed, where each value has a tag of its own.
  void addUnpackedFloat(long start) {
    add(start, Float.BYTES, 1);
    unpacked = true;
  }

  /// Adds an integer that a reader has decoded.
  void addInteger(long value) {
    if (count == integers.length) {
      integers = Arrays.copyOf(integers, 2 * (int) Math.max(1, count));
    }
    integers[(int) count++] = value;
  }

  /// Null where there is none: no feature of the name, or one that holds no list.
  public FeatureSpec.@Nullable Kind kind() {
    return kind;
  }

  /// How many values the list has; of bytes, strings.
  public long count() {
    return count;
  }

  /// Whether a float is a field of its own, as old writers have it.
  public boolean isUnpacked() {
    return unpacked;
  }

  /// In how many places the values lie.
  public int pieces() {
    return used / 2;
  }

  /// The offset of the first piece, in bytes from the record's start; 0 where there is none.
  public long offset() {
    return used == 0 ? 0 : pieces[0];
  }

  /// The first piece's length in bytes: of bytes, of the first string; 0 where there is none.
  public long length() {
    return used == 0 ? 0 : pieces[1];
  }

  /// One of several strings of bytes.
  ///
  /// @param number from 0, less than [#count]
  public byte[] string(int number) {
    return record
        .asSlice(pieces[2 * number], pieces[2 * number + 1])
        .toArray(ValueLayout.JAVA_BYTE);
  }

  /// Writes all values, little endian; of bytes, the first string.
  public void copyTo(MemorySegment target, long offset) {
    if (kind == FeatureSpec.Kind.INT64) {
      if (used > 0) {
        copyVarints(target, offset);
      } else {
        for (int i = 0; i < count; i++) {
          target.set(LONG, offset + (long) i * Long.BYTES, integers[i]);
        }
      }
      return;
    }
    long at = offset;
    int end = kind == FeatureSpec.Kind.BYTES ? Math.min(2, used) : used;
    for (int piece = 0; piece < end; piece += 2) {
      MemorySegment.copy(record, pieces[piece], target, at, pieces[piece + 1]);
      at += pieces[piece + 1];
    }
  }

  /// Copies one piece of integers that a reader has found to be whole.
  private void copyVarints(MemorySegment target, long offset) {
    long to = offset;
    long end = pieces[0] + pieces[1];
    for (long at = pieces[0]; at < end; to += Long.BYTES) {
      long value = 0;
      int shift = 0;
      byte b;
      do {
        b = record.get(ValueLayout.JAVA_BYTE, at++);
        value |= (b & 0x7fL) << shift;
        shift += VARINT_BITS;
      } while (b < 0);
      target.set(LONG, to, value);
    }
  }
}
