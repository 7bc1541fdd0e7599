// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The kind and the offsets of the values of one feature of a record, or of one step of a feature
/// list. Readers reuse an instance for every record. Not thread-safe.
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

  /// The kinds that the values had before their last one.
  private final Set<FeatureSpec.Kind> before = EnumSet.noneOf(FeatureSpec.Kind.class);

  private boolean ambiguous;

  /// Forgets all values.
  void clear() {
    kind = null;
    count = 0;
    used = 0;
    if (!before.isEmpty()) {
      before.clear();
      ambiguous = false;
    }
  }

  /// Begins a list in a record. The list continues an earlier list of the same kind, and replaces
  /// a list of another kind.
  void become(MemorySegment bytes, FeatureSpec.Kind next) {
    if (kind == next) {
      return;
    }
    if (kind != null) {
      before.add(kind);
      ambiguous |= before.contains(next);
      count = 0;
      used = 0;
    }
    record = bytes;
    kind = next;
    unpacked = false;
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

  /// Whether the values return to a kind that they had before; parsers differ on such a feature.
  public boolean isAmbiguous() {
    return ambiguous;
  }

  /// The number of pieces in which the values lie.
  public int pieces() {
    return used / 2;
  }

  /// The offset of the first piece, in bytes from the record's start; 0 if there is no piece.
  public long offset() {
    return start(0);
  }

  /// The first piece's length in bytes (for BYTES, the first string's); 0 if there is no piece.
  public long length() {
    return used == 0 ? 0 : pieces[1];
  }

  /// Returns the first string of a list of kind BYTES, in the record's memory; the list must have
  /// a string.
  MemorySegment firstString() {
    return record.asSlice(pieces[0], pieces[1]);
  }

  /// Returns one string of a list of kind BYTES.
  ///
  /// @param number the string's number, from 0, less than [#count]
  public byte[] string(int number) {
    return record
        .asSlice(pieces[2 * number], pieces[2 * number + 1])
        .toArray(ValueLayout.JAVA_BYTE);
  }

  /// The values of a list of kind INT64.
  public long[] int64s() {
    long[] values = new long[Math.toIntExact(count)];
    copyTo(MemorySegment.ofArray(values), 0);
    return values;
  }

  /// The values of a list of kind FLOAT.
  public float[] floats() {
    float[] values = new float[Math.toIntExact(count)];
    copyTo(MemorySegment.ofArray(values), 0);
    return values;
  }

  /// Returns the offset in the record at which a piece begins; 0 if there is no piece.
  long start(int piece) {
    return used == 0 ? 0 : pieces[2 * piece];
  }

  /// Returns the offset in the record at which a piece ends.
  long end(int piece) {
    return pieces[2 * piece] + pieces[2 * piece + 1];
  }

  /// Writes all values, little endian; for BYTES, the first string alone.
  public void copyTo(MemorySegment target, long offset) {
    long at = offset;
    int end = kind == FeatureSpec.Kind.BYTES ? Math.min(2, used) : used;
    for (int piece = 0; piece < end; piece += 2) {
      if (kind == FeatureSpec.Kind.INT64) {
        at = copyVarints(pieces[piece], pieces[piece] + pieces[piece + 1], target, at);
      } else {
        MemorySegment.copy(record, pieces[piece], target, at, pieces[piece + 1]);
        at += pieces[piece + 1];
      }
    }
  }

  /// Decodes the integers of one piece, whose varints a reader has checked.
  ///
  /// @return the offset in `target` after the last integer
  private long copyVarints(long start, long end, MemorySegment target, long offset) {
    long to = offset;
    for (long at = start; at < end; to += Long.BYTES) {
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
    return to;
  }
}
