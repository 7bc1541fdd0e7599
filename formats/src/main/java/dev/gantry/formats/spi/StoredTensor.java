// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Copy2D;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;

/// A tensor as its file describes it. Immutable.
///
/// @param extent the extent of the tensor's bytes in its file; if they lie in several extents,
///     the first one
/// @param encoding how the elements lie in the extent
public record StoredTensor(
    String name, DType dtype, TensorShape shape, Extent extent, Encoding encoding) {
  /// @throws MisuseException if the extent's length is not what dtype, shape and encoding need, or the
  ///     tensor's size in bytes exceeds a `long` or is not whole
  public StoredTensor {
    long bytes = bytes(dtype, shape).orElse(-1);
    long needed =
        switch (encoding) {
          case Encoding.Plain _ -> bytes;
          case Encoding.Strided strided -> stridedBytes(dtype, shape, strided);
          case Encoding.Sliced sliced ->
              sliced.bytes() == bytes && sliced.end() <= extent.length() ? extent.length() : -1;
          case Encoding.Joined joined -> joined.bytes() == bytes ? extent.length() : -1;
          case Encoding.Decoded _, Encoding.Quantised _ -> extent.length();
        };
    if (bytes < 0 || needed != extent.length()) {
      throw unfilled(dtype, shape, extent.length());
    }
  }

  /// Makes a plain tensor.
  public StoredTensor(String name, DType dtype, TensorShape shape, Extent extent) {
    this(name, dtype, shape, extent, Encoding.PLAIN);
  }

  private static long stridedBytes(DType dtype, TensorShape shape, Encoding.Strided strided) {
    if (dtype.bits() < Byte.SIZE || strided.strides().size() != shape.rank()) {
      throw new MisuseException("no strides " + strided.strides() + " for " + dtype + " " + shape);
    }
    return Math.multiplyExact(strided.span(shape), dtype.bits() / Byte.SIZE);
  }

  /// How many bytes a tensor takes in memory; empty if they are not whole bytes, or more than a
  /// `long` counts.
  public static OptionalLong bytes(DType dtype, TensorShape shape) {
    long elements = shape.elements().orElse(Long.MAX_VALUE);
    if (elements > Long.MAX_VALUE / dtype.bits() || elements * dtype.bits() % Byte.SIZE != 0) {
      return OptionalLong.empty();
    }
    return OptionalLong.of(elements * dtype.bits() / Byte.SIZE);
  }

  /// @throws MisuseException if `length` bytes are not what dtype and shape need
  public static void requireFilled(DType dtype, TensorShape shape, long length) {
    if (bytes(dtype, shape).orElse(-1) != length) {
      throw unfilled(dtype, shape, length);
    }
  }

  private static MisuseException unfilled(DType dtype, TensorShape shape, long length) {
    return new MisuseException(dtype + " " + shape + " does not fill " + length + " bytes");
  }

  /// The tensor's size in memory, in bytes.
  public long bytes() {
    return bytes(dtype, shape).orElseThrow();
  }

  /// Whether a load can copy its bytes as they are.
  public boolean isPlain() {
    return encoding instanceof Encoding.Plain;
  }

  /// Returns the rows `from` (inclusive) to `to` (exclusive) of the first dimension as a tensor of the same
  /// name.
  ///
  /// @throws MisuseException if this is a scalar, if it lacks some of the rows, or if rows of a sub-byte
  ///     dtype begin or end inside a byte
  public StoredTensor rows(long from, long to) {
    if (shape.rank() == 0) {
      throw new MisuseException("tensor '" + name + "' is a scalar and has no rows");
    }
    long rows = shape.dimension(0);
    if (from < 0 || from > to || to > rows) {
      throw new MisuseException(
          "rows " + from + " to " + to + " of tensor '" + name + "', which has " + rows + " rows");
    }
    // The bits of all rows fit a `long`, so those of one row do.
    long rowBits = rows == 0 ? 0 : shape.elements().orElseThrow() / rows * dtype.bits();
    if (from * rowBits % Byte.SIZE != 0 || to * rowBits % Byte.SIZE != 0) {
      throw new MisuseException(
          "rows %s to %s of tensor '%s' are not whole bytes of %s"
              .formatted(from, to, name, dtype));
    }
    TensorShape part = shape.withRows(to - from);
    return switch (encoding) {
      case Encoding.Plain _ ->
          new StoredTensor(
              name,
              dtype,
              part,
              slice(from * rowBits / Byte.SIZE, (to - from) * rowBits / Byte.SIZE));
      case Encoding.Strided strided -> stridedRows(from, part, strided);
      case Encoding.Sliced sliced ->
          new StoredTensor(
              name,
              dtype,
              part,
              extent,
              slicedRows(sliced, from * rowBits / Byte.SIZE, to * rowBits / Byte.SIZE));
      case Encoding.Joined joined ->
          new StoredTensor(
              name,
              dtype,
              part,
              extent,
              from == to || rowBits == 0
                  ? new Encoding.Joined(List.of())
                  : joined.cut(
                      List.of(
                          Copy2D.ofRow(
                              from * rowBits / Byte.SIZE, 0, (to - from) * rowBits / Byte.SIZE))));
      case Encoding.Decoded decoded ->
          new StoredTensor(
              name,
              dtype,
              part,
              extent,
              new Encoding.Decoded(decoded.name(), decodedRows(from * rowBits / Byte.SIZE)));
      case Encoding.Quantised _ -> slice(0, List.of(new Span(from, to)));
    };
  }

  /// A range of indexes along an axis.
  ///
  /// @param to exclusive
  public record Span(long from, long to) {
    long length() {
      return to - from;
    }
  }

  /// Returns the elements of some ranges along an axis, one range behind the other, as a tensor of the same name.
  ///
  /// @throws MisuseException if parts of the tensor's encoding cannot be read along this axis, or parts of a sub-byte dtype
  ///     begin or end inside a byte
  public StoredTensor slice(int axis, List<Span> spans) {
    if (spans.size() == 1 && spans.getFirst().equals(new Span(0, shape.dimension(axis)))) {
      return this;
    }
    return switch (encoding) {
      case Encoding.Plain _, Encoding.Joined _ -> Slices.plain(this, axis, spans);
      case Encoding.Quantised quantised -> Slices.quantised(this, quantised, axis, spans);
      case Encoding.Strided _, Encoding.Sliced _, Encoding.Decoded _ -> {
        if (axis == 0 && spans.size() == 1) {
          yield rows(spans.getFirst().from(), spans.getFirst().to());
        }
        throw new MisuseException(
            "tensor '%s' does not lie in its file as memory holds it: it has no slices along axis %s"
                .formatted(name, axis));
      }
    };
  }

  private StoredTensor stridedRows(long from, TensorShape part, Encoding.Strided strided) {
    long elementBytes = dtype.bits() / Byte.SIZE;
    long length = strided.span(part) * elementBytes;
    long offset = length == 0 ? 0 : from * strided.strides().getFirst() * elementBytes;
    return new StoredTensor(name, dtype, part, slice(offset, length), strided);
  }

  /// @param from the start of the bytes to keep, as an offset in the tensor's memory
  private static Encoding.Sliced slicedRows(Encoding.Sliced sliced, long from, long to) {
    List<Copy2D> kept = new ArrayList<>();
    for (Copy2D rows : sliced.rows()) {
      for (long row = 0; row < rows.rows(); row++) {
        long target = rows.target() + row * rows.targetPitch();
        long cut = Math.max(0, from - target);
        long bytes = Math.min(rows.width(), to - target) - cut;
        if (bytes > 0) {
          kept.add(rows.partOfRow(row, cut, bytes).shifted(0, -from));
        }
      }
    }
    return new Encoding.Sliced(kept);
  }

  /// Returns a decoder that decodes the whole tensor and keeps the wanted rows.
  private TensorDecoder decodedRows(long offset) {
    StoredTensor whole = this;
    TensorDecoder decoder = ((Encoding.Decoded) encoding).decoder();
    return (file, _, target) -> {
      try (Arena arena = Arena.ofShared()) {
        MemorySegment all = arena.allocate(Math.max(1, whole.bytes()), Long.BYTES);
        decoder.decode(file, whole, all.asSlice(0, whole.bytes()));
        MemorySegment.copy(all, offset, target, 0, target.byteSize());
      }
    };
  }

  private Extent slice(long offset, long length) {
    return new Extent(extent.file(), extent.offset() + offset, length);
  }
}
