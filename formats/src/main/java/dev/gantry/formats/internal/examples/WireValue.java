package dev.gantry.formats.internal.examples;

import dev.gantry.formats.tfrecord.FeatureKind;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/// A feature that is written the usual way: one list, of one string or of packed numbers. It knows
/// where its payload lies in the record.
final class WireValue implements FeatureValue {
  private static final int FIRST_FIELD = 0x0a;
  private static final int BYTES_LIST = 0x0a;
  private static final int FLOAT_LIST = 0x12;
  private static final int INT64_LIST = 0x1a;
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final WireCursor cursor = new WireCursor();
  private MemorySegment record = MemorySegment.NULL;
  private @Nullable FeatureKind kind;
  private long payload;
  private long payloadBytes;
  private long count;

  void clear() {
    kind = null;
    count = 0;
    payloadBytes = 0;
  }

  /// Reads a `Feature` message.
  ///
  /// @throws WireCursor.Unusual if it is written in another way
  void read(MemorySegment bytes, long from, long end) {
    clear();
    if (from == end) {
      return;
    }
    record = bytes;
    cursor.start(bytes, from);
    FeatureKind found =
        switch (cursor.tag(end)) {
          case BYTES_LIST -> FeatureKind.BYTES;
          case FLOAT_LIST -> FeatureKind.FLOAT;
          case INT64_LIST -> FeatureKind.INT64;
          default -> throw new WireCursor.Unusual();
        };
    whole(end);
    boolean empty = cursor.at() == end;
    if (!empty) {
      if (cursor.tag(end) != FIRST_FIELD) {
        throw new WireCursor.Unusual();
      }
      whole(end);
    }
    payload = cursor.at();
    payloadBytes = end - payload;
    count =
        switch (found) {
          case BYTES -> empty ? 0 : 1;
          case FLOAT -> floats();
          case INT64 -> varints(end);
        };
    kind = found;
  }

  /// The field must be the last of its message.
  private void whole(long end) {
    if (cursor.fieldEnd(end) != end) {
      throw new WireCursor.Unusual();
    }
  }

  private long floats() {
    if (payloadBytes % Float.BYTES != 0) {
      throw new WireCursor.Unusual();
    }
    return payloadBytes / Float.BYTES;
  }

  private long varints(long end) {
    long found = 0;
    while (cursor.at() < end) {
      long _ = cursor.varint(end);
      found++;
    }
    return found;
  }

  @Override
  public @Nullable FeatureKind kind() {
    return kind;
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  public long stringBytes() {
    return payloadBytes;
  }

  /// Where the payload lies, from the record's start: a string's bytes, or packed numbers.
  long payload() {
    return payload;
  }

  /// The payload's length in bytes.
  long payloadBytes() {
    return payloadBytes;
  }

  @Override
  public void copyTo(MemorySegment target, long offset) {
    if (kind != FeatureKind.INT64) {
      MemorySegment.copy(record, payload, target, offset, payloadBytes);
      return;
    }
    cursor.moveTo(payload);
    long end = payload + payloadBytes;
    for (long at = offset; cursor.at() < end; at += Long.BYTES) {
      target.set(LONG, at, cursor.varint(end));
    }
  }
}
