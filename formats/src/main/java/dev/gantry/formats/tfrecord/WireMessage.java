// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.tfrecord;

import com.google.protobuf.CodedOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;

/// A message in Protobuf's wire format, whose fields are bytes or messages. The message's size is
/// known before it is written, so each byte is written once. Not thread-safe.
final class WireMessage {
  private static final int LENGTH_DELIMITED = 2;

  /// Writes a field's value to an array; this fails only if the field's size was computed wrong.
  @FunctionalInterface
  interface Value {
    void writeTo(CodedOutputStream target) throws IOException;
  }

  private record WireField(int number, int bytes, Value value) {}

  private final List<WireField> fields = new ArrayList<>();
  private long bytes;

  /// Adds a field of bytes; the array must not change until the message is written.
  WireMessage add(int field, byte[] value) {
    return add(field, value.length, target -> target.writeRawBytes(value));
  }

  /// Adds a field that is a message; no more fields may be added to that message.
  WireMessage add(int field, WireMessage message) {
    return add(field, message.bytes, message::writeTo);
  }

  private WireMessage add(int field, long valueBytes, Value value) {
    // A value longer than an array makes the whole message too long, which is an error before it
    // is written.
    int written = (int) Math.min(Integer.MAX_VALUE, valueBytes);
    fields.add(new WireField(field, written, value));
    bytes +=
        CodedOutputStream.computeTagSize(field)
            + CodedOutputStream.computeUInt32SizeNoTag(written)
            + valueBytes;
    return this;
  }

  /// The message's size in bytes.
  long bytes() {
    return bytes;
  }

  private void writeTo(CodedOutputStream target) throws IOException {
    for (WireField field : fields) {
      target.writeTag(field.number(), LENGTH_DELIMITED);
      target.writeUInt32NoTag(field.bytes());
      field.value().writeTo(target);
    }
  }

  /// Returns the whole message, which must fit an array.
  byte[] toBytes() {
    return bytes((int) bytes, this::writeTo);
  }

  /// @param size how many bytes `value` writes
  static byte[] bytes(int size, Value value) {
    byte[] written = new byte[size];
    CodedOutputStream target = CodedOutputStream.newInstance(written);
    try {
      value.writeTo(target);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    target.checkNoSpaceLeft();
    return written;
  }
}
