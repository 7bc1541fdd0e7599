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

  /// The start and the length of each non-empty piece; each string of BYTES is a piece.
  private long[] pieces = new long[2];

  private int used;

  /// Integers that a reader has decoded already; pieces do not include them.
  private long[] integers = {};

  /// Forgets all values.
  void clear() {
    begin(MemorySegment.NULL, null);
  }

  /// Begins an empty list in a record.
  void begin(MemorySegment bytes, FeatureSpec.@Nullable Kind of) {
    record = bytes;
    kind = of;
    count = 0;
    unpacked = false;
    used = 0;
  }

  /// Adds values that lie end to end in the record.
  ///
  /// @param values how many values; 1 for a string of BYTES
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

  /// The list's kind; null if the record lacks the feature, or it holds no list.
  public FeatureSpec.@Nullable Kind kind() {
    return kind;
  }

  /// How many values the list has; for BYTES, how many strings.
  public long count() {
    return count;
  }

  /// Whether any float is a field of its own, which is how old writers write lists.
  public boolean isUnpacked() {
    return unpacked;
  }

  /// In how many places the values lie.
  public int pieces() {
    return used / 2;
  }

  /// The offset of the first piece, in bytes from the record's start; 0 if there is no piece.
  public long offset() {
    return used == 0 ? 0 : pieces[0];
  }

  /// The first piece's length in bytes (for BYTES, the first string's); 0 if there is no piece.
  public long length() {
    return used == 0 ? 0 : pieces[1];
  }

  /// Returns one string of a list of kind BYTES.
  ///
  /// @param number the string's number, from 0, less than [#count]
  public byte[] string(int number) {
    return record
        .asSlice(pieces[2 * number], pieces[2 * number + 1])
        .toArray(ValueLayout.JAVA_BYTE);
  }

  /// Writes all values, little endian; for BYTES, the first string alone.
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

  /// Decodes the integers of one piece, whose varints a reader has checked.
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
