// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.gguf;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/// Writes GGUF files by hand, including files that no writer makes.
final class HandmadeGguf {
  private final ByteArrayOutputStream notes = new ByteArrayOutputStream();
  private final ByteArrayOutputStream infos = new ByteArrayOutputStream();
  private final ByteArrayOutputStream data = new ByteArrayOutputStream();
  private final int alignment;
  private long noteCount;
  private long tensorCount;

  HandmadeGguf() {
    this(32);
  }

  HandmadeGguf(int alignment) {
    this.alignment = alignment;
    if (alignment != 32) {
      var _ = note("general.alignment", 4, number(alignment, 4));
    }
  }

  static byte[] number(long value, int bytes) {
    ByteBuffer buffer = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN).putLong(value);
    return java.util.Arrays.copyOf(buffer.array(), bytes);
  }

  static byte[] text(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return joined(number(bytes.length, 8), bytes);
  }

  static byte[] joined(byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] part : parts) {
      all.writeBytes(part);
    }
    return all.toByteArray();
  }

  HandmadeGguf note(String key, int type, byte[] value) {
    noteCount++;
    notes.writeBytes(joined(text(key), number(type, 4), value));
    return this;
  }

  /// Adds a tensor at the next aligned offset.
  ///
  /// @param shape the shape in the file's order, with the fastest axis first
  HandmadeGguf tensor(String name, int type, byte[] bytes, long... shape) {
    data.writeBytes(new byte[(alignment - data.size() % alignment) % alignment]);
    return info(name, type, data.size(), shape).data(bytes);
  }

  HandmadeGguf info(String name, int type, long offset, long... shape) {
    tensorCount++;
    infos.writeBytes(joined(text(name), number(shape.length, 4)));
    for (long axis : shape) {
      infos.writeBytes(number(axis, 8));
    }
    infos.writeBytes(joined(number(type, 4), number(offset, 8)));
    return this;
  }

  HandmadeGguf data(byte[] bytes) {
    data.writeBytes(bytes);
    return this;
  }

  byte[] bytes() {
    return bytes(3);
  }

  byte[] bytes(int version) {
    byte[] header =
        joined(
            "GGUF".getBytes(StandardCharsets.US_ASCII),
            number(version, 4),
            number(tensorCount, 8),
            number(noteCount, 8),
            notes.toByteArray(),
            infos.toByteArray());
    return joined(
        header, new byte[(alignment - header.length % alignment) % alignment], data.toByteArray());
  }
}
