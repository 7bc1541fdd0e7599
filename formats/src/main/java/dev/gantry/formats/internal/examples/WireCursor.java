// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.examples;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Walks over a message in protobuf's wire format that is written the usual way, and throws [Unusual] at
/// anything else.
final class WireCursor {
  /// Says that [CompleteReader] must read the message; this is not an error.
  static final class Unusual extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unusual() {
      // It has no stack trace, since it is caught nearby and may be thrown for every record.
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

  /// Reads a field's tag, which must be one byte.
  int tag(long end) {
    return Byte.toUnsignedInt(next(end));
  }

  /// Reads the length of a field.
  ///
  /// @param end the end of the message, which the field may not pass
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

  /// Skips all varints up to `end`, of up to ten bytes each. A tenth byte may hold only the number's
  /// highest bit: protobuf's parsers differ about its other bits.
  ///
  /// @return how many integers there are
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
