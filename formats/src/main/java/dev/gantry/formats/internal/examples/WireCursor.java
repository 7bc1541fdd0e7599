// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Walks over a message in protobuf's wire format, as far as the message is written the usual way.
/// Everything else is [Unusual].
final class WireCursor {
  /// Not an error: the message is for [CompleteReader].
  static final class Unusual extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unusual() {
      // Without a stack trace: it is caught close by, perhaps for every record.
      super(null, null, false, false);
    }
  }

  private static final int LENGTH_SHIFTS = 28;
  private static final int VARINT_SHIFTS = 63;

  private MemorySegment message = MemorySegment.NULL;
  private long at;

  /// Begins at a message's start.
  void start(MemorySegment bytes) {
    message = bytes;
    at = 0;
  }

  long at() {
    return at;
  }

  void moveTo(long offset) {
    at = offset;
  }

  /// The field's tag, which is to be one byte.
  int tag(long end) {
    return Byte.toUnsignedInt(next(end));
  }

  /// The length of a field.
  ///
  /// @param end where its message ends, which it may not pass
  /// @return where the field ends
  long fieldEnd(long end) {
    int length = 0;
    int shift = 0;
    byte b;
    do {
      if (shift > LENGTH_SHIFTS) {
        throw new Unusual();
      }
      b = next(end);
      length |= (b & 0x7f) << shift;
      shift += 7;
    } while (b < 0);
    if (length < 0 || length > end - at) {
      throw new Unusual();
    }
    return at + length;
  }

  /// Passes by all integers up to `end`, of up to ten bytes each. Of the tenth byte only the highest
  /// bit of the number is taken: protobuf's parsers do not agree about others.
  ///
  /// @return how many there are
  long varints(long end) {
    long count = 0;
    while (at < end) {
      int shift = 0;
      byte b;
      do {
        b = next(end);
        if (shift == VARINT_SHIFTS && b != 1) {
          throw new Unusual();
        }
        shift += 7;
      } while (b < 0);
      count++;
    }
    return count;
  }

  private byte next(long end) {
    if (at >= end) {
      throw new Unusual();
    }
    return message.get(ValueLayout.JAVA_BYTE, at++);
  }
}
