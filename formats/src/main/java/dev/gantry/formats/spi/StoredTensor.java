package dev.gantry.formats.spi;

import dev.gantry.core.DType;
import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Shape;
import dev.gantry.core.internal.plan.Wanted;
import java.util.OptionalLong;

/// A tensor as its file describes it: dense, C order, little endian. Immutable.
///
/// @param extent where its bytes lie, from the start of the file
public record StoredTensor(String name, DType dtype, Shape shape, Extent extent) {
  /// @throws MisuseException if the extent's length is not what dtype and shape need
  public StoredTensor {
    requireFilled(dtype, shape, extent.length());
  }

  /// How many bytes a tensor takes in memory; empty if they are not whole bytes, or more than a
  /// `long` counts.
  public static OptionalLong bytes(DType dtype, Shape shape) {
    long elements = shape.elements().orElse(Long.MAX_VALUE);
    if (elements > Long.MAX_VALUE / dtype.bits() || elements * dtype.bits() % Byte.SIZE != 0) {
      return OptionalLong.empty();
    }
    return OptionalLong.of(elements * dtype.bits() / Byte.SIZE);
  }

  /// @throws MisuseException if `length` bytes are not what dtype and shape need
  public static void requireFilled(DType dtype, Shape shape, long length) {
    if (bytes(dtype, shape).orElse(-1) != length) {
      throw new MisuseException(dtype + " " + shape + " does not fill " + length + " bytes");
    }
  }

  /// Its bytes, at an address where its elements are aligned: what a load asks for.
  public Wanted wanted() {
    return new Wanted(extent, dtype.alignmentBytes());
  }

  /// The tensor that is rows `from` (inclusive) to `to` (exclusive) of this one's first dimension,
  /// under the same name.
  ///
  /// @throws MisuseException if this is a scalar, if the rows are not all there, or if in a
  ///     sub-byte dtype they begin or end inside a byte
  public StoredTensor rows(long from, long to) {
    if (shape.rank() == 0) {
      throw new MisuseException("tensor '" + name + "' is a scalar and has no rows");
    }
    long rows = shape.dimension(0);
    if (from < 0 || from > to || to > rows) {
      throw new MisuseException(
          "rows " + from + " to " + to + " of tensor '" + name + "', which has " + rows + " rows");
    }
    // The bits of all rows fit a long, so those of some do.
    long rowBits = rows == 0 ? 0 : shape.elements().orElseThrow() / rows * dtype.bits();
    if (from * rowBits % Byte.SIZE != 0 || to * rowBits % Byte.SIZE != 0) {
      throw new MisuseException(
          "rows "
              + from
              + " to "
              + to
              + " of tensor '"
              + name
              + "' are not whole bytes of "
              + dtype);
    }
    Extent part =
        new Extent(
            extent.file(),
            extent.offset() + from * rowBits / Byte.SIZE,
            (to - from) * rowBits / Byte.SIZE);
    return new StoredTensor(name, dtype, shape.withRows(to - from), part);
  }
}
