// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/// A message in protobuf's wire format, whose fields are bytes or messages. Its size is known before it is written, so each
/// byte is written once. Not thread-safe.
final class WireMessage {
  private static final int LENGTH_DELIMITED = 2;

  private record WireField(int tag, long bytes, Consumer<ByteBuffer> value) {}

  private final List<WireField> fields = new ArrayList<>();
  private long bytes;

  /// Adds a field of bytes, which must not change until the message is written.
  WireMessage add(int field, byte[] value) {
    return add(field, value.length, target -> target.put(value));
  }

  /// Adds a message, which must not change any more.
  WireMessage add(int field, WireMessage message) {
    return add(field, message.bytes, message::writeTo);
  }

  private WireMessage add(int field, long valueBytes, Consumer<ByteBuffer> value) {
    int tag = field << 3 | LENGTH_DELIMITED;
    fields.add(new WireField(tag, valueBytes, value));
    bytes += varintBytes(tag) + varintBytes(valueBytes) + valueBytes;
    return this;
  }

  /// The size in bytes.
  long bytes() {
    return bytes;
  }

  void writeTo(ByteBuffer target) {
    for (WireField field : fields) {
      putVarint(target, field.tag());
      putVarint(target, field.bytes());
      field.value().accept(target);
    }
  }

  static int varintBytes(long value) {
    return Math.max(1, Math.ceilDiv(Long.SIZE - Long.numberOfLeadingZeros(value), 7));
  }

  static void putVarint(ByteBuffer target, long value) {
    long rest = value;
    for (; (rest & ~0x7fL) != 0; rest >>>= 7) {
      target.put((byte) (rest | 0x80));
    }
    target.put((byte) rest);
  }
}
