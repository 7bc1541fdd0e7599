package dev.gantry.formats.internal.examples;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// Walks over a message in protobuf's wire format, as far as it is written the usual way. Whatever
/// else it meets it takes no view of, and says so by [Unusual].
final class WireCursor {
  /// Not an error: the message is for protobuf to read.
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

  void start(MemorySegment bytes, long from) {
    message = bytes;
    at = from;
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

  /// An integer of up to ten bytes. The tenth holds the highest bit, which alone makes it
  /// necessary: protobuf itself is of two minds about others.
  long varint(long end) {
    long value = 0;
    int shift = 0;
    byte b;
    do {
      b = next(end);
      if (shift == VARINT_SHIFTS && b != 1) {
        throw new Unusual();
      }
      value |= (long) (b & 0x7f) << shift;
      shift += 7;
    } while (b < 0);
    return value;
  }

  private byte next(long end) {
    if (at >= end) {
      throw new Unusual();
    }
    return message.get(ValueLayout.JAVA_BYTE, at++);
  }
}
