// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.npy;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;

/// The checked contents of a `.npy` header.
///
/// @param headerBytes the offset of the elements from the start of the `.npy`
/// @param dataBytes how many bytes the elements take
public record NpyHeader(
    DType dtype, TensorShape shape, Encoding encoding, long headerBytes, long dataBytes) {
  /// The longest header, in bytes. NumPy's own reader stops at 10,000.
  private static final int MAX_HEADER_BYTES = 1 << 20;

  /// The most dimensions of an array, as in NumPy 2.
  private static final int MAX_RANK = 64;

  private static final byte[] MAGIC = "\u0093NUMPY".getBytes(StandardCharsets.ISO_8859_1);

  /// The size of the magic string and the version.
  private static final int PREFIX_BYTES = 8;

  public static boolean hasMagic(ByteBuffer start) {
    return start.remaining() >= MAGIC.length
        && start.slice(start.position(), MAGIC.length).equals(ByteBuffer.wrap(MAGIC));
  }

  /// @throws dev.gantry.core.MalformedFileException if the header breaks a rule of the format, or
  ///     describes an array that Gantry does not read; each fault has its own kind
  public static NpyHeader read(NpyInput input) {
    requireBytes(input, PREFIX_BYTES);
    ByteBuffer prefix = input.next(PREFIX_BYTES);
    if (!hasMagic(prefix)) {
      throw input.malformed(
          0, "bad-magic", "a NumPy array begins with \\x93NUMPY, and this does not");
    }
    int major = Byte.toUnsignedInt(prefix.get(6));
    int minor = Byte.toUnsignedInt(prefix.get(7));
    if (major < 1 || major > 3 || minor != 0) {
      throw input.malformed(
          6, "unknown-version", "version " + major + "." + minor + " is not 1.0, 2.0 or 3.0");
    }
    int lengthBytes = major == 1 ? Short.BYTES : Integer.BYTES;
    requireBytes(input, PREFIX_BYTES + lengthBytes);
    ByteBuffer word = input.next(lengthBytes).order(ByteOrder.LITTLE_ENDIAN);
    long length =
        major == 1 ? Short.toUnsignedLong(word.getShort()) : Integer.toUnsignedLong(word.getInt());
    if (length > MAX_HEADER_BYTES) {
      throw input.malformed(
          PREFIX_BYTES, "header-too-large", length + " bytes, more than " + MAX_HEADER_BYTES);
    }
    int start = PREFIX_BYTES + lengthBytes;
    requireBytes(input, start + length);
    Charset charset = major == 3 ? StandardCharsets.UTF_8 : StandardCharsets.ISO_8859_1;
    String text = charset.decode(input.next((int) length)).toString();
    HeaderLiteral literal = new HeaderLiteral(input, start, text, major < 3).parse();
    return checked(input, start, start + length, literal);
  }

  private static void requireBytes(NpyInput input, long bytes) {
    if (bytes > input.length()) {
      throw input.malformed(
          input.length(),
          "header-past-end",
          "the header ends at byte " + bytes + ", but there are " + input.length());
    }
  }

  private static NpyHeader checked(
      NpyInput input, int start, long headerBytes, HeaderLiteral literal) {
    NpyType type = NpyType.of(input, start + literal.typeOffset(), literal.type());
    if (literal.shape().size() > MAX_RANK) {
      throw input.malformed(
          start, "too-many-axes", literal.shape().size() + " axes, more than " + MAX_RANK);
    }
    TensorShape shape =
        TensorShape.of(literal.shape().stream().mapToLong(Long::longValue).toArray());
    long bytes =
        StoredTensor.bytes(type.dtype(), shape)
            .orElseThrow(() ->
                input.malformed(
                    start,
                    "shape-overflow",
                    type.dtype() + " " + shape + " has too many elements to count"));
    long there = input.length() - headerBytes;
    if (there < bytes) {
      throw input.malformed(
          headerBytes + there,
          "data-past-end",
          type.dtype() + " " + shape + " takes " + bytes + " bytes, and there are " + there);
    }
    if (there > bytes) {
      throw input.malformed(
          headerBytes + bytes,
          "trailing-bytes",
          (there - bytes) + " bytes after the array are no element's");
    }
    return new NpyHeader(
        type.dtype(), shape, encoding(type, shape, literal.fortranOrder()), headerBytes, bytes);
  }

  private static Encoding encoding(NpyType type, TensorShape shape, boolean fortranOrder) {
    int axes = 0;
    for (int axis = 0; axis < shape.rank(); axis++) {
      axes += shape.dimension(axis) == 1 ? 0 : 1;
    }
    boolean reordered = fortranOrder && axes > 1;
    boolean empty = shape.elements().orElseThrow() == 0;
    if (empty || (!reordered && type.order() == ByteOrder.LITTLE_ENDIAN)) {
      return Encoding.PLAIN;
    }
    return reordered
        ? Encoding.Strided.columnMajor(shape, type.order())
        : Encoding.Strided.rowMajor(shape, type.order());
  }

  /// Returns the tensor of an uncompressed array.
  ///
  /// @param offset the file offset of the `.npy`
  public StoredTensor tensor(String name, Location file, long offset) {
    Extent extent = new Extent(file, offset + headerBytes, dataBytes);
    return new StoredTensor(name, dtype, shape, extent, encoding);
  }
}
