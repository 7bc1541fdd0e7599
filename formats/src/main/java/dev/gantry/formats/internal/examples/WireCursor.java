// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import dev.gantry.core.MalformedFileException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Walks over a record in protobuf's wire format, and accepts what protobuf's parsers accept. Not thread-safe.
final class WireCursor {
  /// The deepest nesting of groups, the same as in protobuf's parsers.
  private static final int MAX_GROUPS = 100;

  private static final int MAX_VARINT_BYTES = 10;

  /// The smallest tag of a field. Most tags lie between it and the largest number of one byte.
  private static final int FIRST_TAG = 1 << 3;

  private RawRecord record = RawRecord.NONE;
  private MemorySegment bytes = MemorySegment.NULL;
  private long at;

  /// Begins at a record's start.
  void start(RawRecord begun) {
    record = begun;
    bytes = begun.data();
    at = 0;
  }

  long at() {
    return at;
  }

  void moveTo(long offset) {
    at = offset;
  }

  /// Reads a field's tag.
  ///
  /// @param end the end of the message, which the field may not pass
  int tag(long end) {
    if (at < end) {
      byte b = bytes.get(ValueLayout.JAVA_BYTE, at);
      if (b >= FIRST_TAG) {
        at++;
        return b;
      }
    }
    int tag = number(end);
    if (tag >>> 3 == 0) {
      throw fault("a field of number 0");
    }
    return tag;
  }

  /// Reads a varint, of which only the low 32 bits count. Such a varint has few bytes, mostly
  /// one, so the method is short enough for compilers to inline it.
  private int number(long end) {
    if (at < end) {
      byte b = bytes.get(ValueLayout.JAVA_BYTE, at);
      if (b >= 0) {
        at++;
        return b;
      }
    }
    int value = 0;
    long next = at;
    for (int shift = 0; shift < Integer.SIZE && next < end; shift += 7) {
      byte b = bytes.get(ValueLayout.JAVA_BYTE, next++);
      value |= (b & 0x7f) << shift;
      if (b >= 0) {
        at = next;
        return value;
      }
    }
    return (int) varint(end);
  }

  /// Reads the length of a field.
  ///
  /// @return the offset at which the field ends
  long fieldEnd(long end) {
    int length = number(end);
    if (length < 0 || length > end - at) {
      throw fault(
          "a field of " + Integer.toUnsignedString(length) + " bytes is longer than its message");
    }
    return at + length;
  }

  /// Moves to the bytes of a field that fills its message up to the end.
  ///
  /// @param tag the field's tag, which must be one byte
  /// @return false if the message's remaining bytes are not such a field; the cursor has not
  ///     moved then
  boolean only(int tag, long end) {
    long start = at;
    if (start < end && bytes.get(ValueLayout.JAVA_BYTE, start) == tag) {
      at++;
      if (number(end) == end - at) {
        return true;
      }
      at = start;
    }
    return false;
  }

  /// Reads a varint, of which only the low 64 bits count.
  long varint(long end) {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE; shift += 7) {
      if (at >= end) {
        throw fault("the message ends within a field");
      }
      byte b = bytes.get(ValueLayout.JAVA_BYTE, at++);
      value |= (b & 0x7fL) << shift;
      if (b >= 0) {
        return value;
      }
    }
    throw fault("a number of more than " + MAX_VARINT_BYTES + " bytes");
  }

  /// Skips all varints up to `end`.
  ///
  /// @return how many varints there are
  long varints(long end) {
    long count = 0;
    long first = at;
    while (at < end) {
      if (bytes.get(ValueLayout.JAVA_BYTE, at++) >= 0) {
        count++;
        first = at;
      } else if (at - first == MAX_VARINT_BYTES) {
        throw fault("a number of more than " + MAX_VARINT_BYTES + " bytes");
      }
    }
    if (first < end) {
      throw fault("the list ends within a number");
    }
    return count;
  }

  /// Skips a field after its tag.
  void skip(int tag, long end) {
    skip(tag, end, MAX_GROUPS);
  }

  private void skip(int tag, long end, int groups) {
    switch (tag & 7) {
      case 0 -> {
        long _ = varint(end);
      }
      case 1 -> skipBytes(Long.BYTES, end);
      case 2 -> at = fieldEnd(end);
      case 3 -> {
        if (groups == 0) {
          throw fault("more than " + MAX_GROUPS + " nested groups");
        }
        // The tag that ends a group is the group's start tag plus one: the same field number,
        // with wire type 4.
        for (int inner = tag(end); inner != tag + 1; inner = tag(end)) {
          skip(inner, end, groups - 1);
        }
      }
      case 5 -> skipBytes(Integer.BYTES, end);
      default -> throw fault("no field begins with wire type " + (tag & 7));
    }
  }

  private void skipBytes(int count, long end) {
    if (count > end - at) {
      throw fault("the message ends within a field");
    }
    at += count;
  }

  /// Makes an error of kind `invalid-proto` about the byte that is read next.
  MalformedFileException fault(String detail) {
    return record.fault(ExampleDecoder.INVALID_PROTO, "byte " + at + ": " + detail);
  }
}
