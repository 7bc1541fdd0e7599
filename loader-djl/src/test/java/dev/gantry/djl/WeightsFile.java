// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/// Makes safetensors files with known values. Names must be plain ASCII.
final class WeightsFile {
  private final List<String> entries = new ArrayList<>();
  private final ByteArrayOutputStream body = new ByteArrayOutputStream();

  /// Adds a tensor with these elements.
  WeightsFile tensor(String name, DType dtype, TensorShape shape, double... values) {
    return raw(name, dtype, shape, bytes(dtype, values));
  }

  /// Adds a vector with these elements.
  WeightsFile vector(String name, DType dtype, double... values) {
    return tensor(name, dtype, TensorShape.of(values.length), values);
  }

  /// Adds a tensor of any dtype from the bytes of its elements.
  WeightsFile raw(String name, DType dtype, TensorShape shape, byte... bytes) {
    entries.add(entry(name, dtype, shape, body.size(), body.size() + bytes.length));
    body.writeBytes(bytes);
    return this;
  }

  Path write(Path file) throws IOException {
    try (var out = Files.newOutputStream(file)) {
      out.write(head(entries));
      body.writeTo(out);
    }
    return file;
  }

  /// Makes a sparse file of one U8 vector of `bytes` zeros.
  ///
  /// @return the offset of the data
  static long writeSparse(Path file, String name, long bytes) throws IOException {
    byte[] head = head(List.of(entry(name, DType.U8, TensorShape.of(bytes), 0, bytes)));
    try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
      out.write(head);
      out.setLength(head.length + bytes);
    }
    return head.length;
  }

  private static byte[] head(List<String> entries) {
    String header = "{" + String.join(",", entries) + "}";
    // The header is padded as the reference writer does, so that the data begin at a multiple of
    // 8.
    byte[] json = (header + " ".repeat(-header.length() & 7)).getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(Long.BYTES + json.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .putLong(json.length)
        .put(json)
        .array();
  }

  private static String entry(String name, DType dtype, TensorShape shape, long begin, long end) {
    return ('"' + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape)
        + (",\"data_offsets\":[" + begin + "," + end + "]}");
  }

  /// Returns the elements' bytes in a file: little endian, rounded to the nearest. For complex
  /// dtypes the values are the real parts.
  static byte[] bytes(DType dtype, double... values) {
    ByteBuffer bytes =
        ByteBuffer.allocate(values.length * dtype.bits() / Byte.SIZE)
            .order(ByteOrder.LITTLE_ENDIAN);
    for (double value : values) {
      put(bytes, dtype, value);
    }
    return bytes.array();
  }

  private static void put(ByteBuffer bytes, DType dtype, double value) {
    switch (dtype) {
      case BOOL, U8, I8 -> bytes.put((byte) (long) value);
      case I16, U16 -> bytes.putShort((short) (long) value);
      case I32, U32 -> bytes.putInt((int) (long) value);
      case I64, U64 -> bytes.putLong((long) value);
      case F16 -> bytes.putShort(Float.floatToFloat16((float) value));
      case BF16 -> bytes.putShort(bfloat16((float) value));
      case F32 -> bytes.putFloat((float) value);
      case F64 -> bytes.putDouble(value);
      case C64 -> bytes.putFloat((float) value).putFloat(0);
      case F4, F6_E2M3, F6_E3M2, F8_E5M2, F8_E4M3, F8_E8M0, F8_E4M3FNUZ, F8_E5M2FNUZ ->
          throw new IllegalArgumentException(dtype.name());
    }
  }

  /// Returns the upper half of a float, rounded to the nearest, with ties to even. Not for NaN,
  /// which the rounding could turn into an infinity.
  static short bfloat16(float value) {
    int bits = Float.floatToRawIntBits(value);
    return (short) ((bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16);
  }

  static float fromBfloat16(short bits) {
    return Float.intBitsToFloat(bits << 16);
  }
}
