// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.torch;

import dev.gantry.core.TensorShape;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/// Writes a pickle of protocol 2, as `torch.save` does. Not thread-safe.
final class PickleWriter {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  PickleWriter() {
    op(0x80).op(2);
  }

  PickleWriter op(int opcode) {
    out.write(opcode);
    return this;
  }

  /// Writes a reference to a function or class.
  PickleWriter global(String module, String name) {
    op('c');
    out.writeBytes((module + "\n" + name + "\n").getBytes(StandardCharsets.US_ASCII));
    return this;
  }

  PickleWriter text(String value) {
    byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
    op('X');
    out.writeBytes(
        ByteBuffer.allocate(Integer.BYTES)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putInt(bytes.length)
            .array());
    out.writeBytes(bytes);
    return this;
  }

  PickleWriter integer(long value) {
    op(0x8a).op(Long.BYTES);
    out.writeBytes(
        ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN).putLong(value).array());
    return this;
  }

  PickleWriter integers(long... values) {
    op('(');
    for (long value : values) {
      var _ = integer(value);
    }
    return op('t');
  }

  /// Writes an integer, a floating-point number or a text.
  ///
  /// @param value a Long, a Double or a String
  PickleWriter value(Object value) {
    return switch (value) {
      case Long integer -> integer(integer);
      case Double number -> {
        op('G');
        out.writeBytes(ByteBuffer.allocate(Double.BYTES).putDouble(number).array());
        yield this;
      }
      case String text -> text(text);
      default -> throw new IllegalArgumentException("no value of a pickle: " + value.getClass());
    };
  }

  /// Writes a `torch.Size`.
  PickleWriter size(TensorShape shape) {
    return global("torch", "Size").integers(shape.toArray()).op(0x85).op('R');
  }

  /// Begins an object of a class, whose attributes follow as entries until [#endObject].
  PickleWriter object(String module, String name) {
    return global(module, name).op(')').op(0x81).op('}').op('(');
  }

  PickleWriter endObject() {
    return op('u').op('b');
  }

  byte[] end() {
    return op('.').out.toByteArray();
  }
}
