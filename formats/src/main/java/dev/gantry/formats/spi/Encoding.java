// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.core.spi.Formula;
import java.nio.ByteOrder;
import java.util.List;
import java.util.function.IntUnaryOperator;

/// How a tensor's elements lie in its extent. A load brings every tensor into memory densely, in C
/// order, little endian.
public sealed interface Encoding {
  /// The elements lie as memory holds them. A load copies the extent as it is, by any transport.
  Encoding PLAIN = new Plain();

  /// The type of [#PLAIN].
  record Plain() implements Encoding {}

  /// Element `(i, j, …)` lies `i * strides[0] + j * strides[1] + …` elements from the extent's start. The
  /// CPU puts the elements in order. It cannot be used for dtypes of less than a byte.
  ///
  /// @param strides a stride for each axis, in elements, 0 or more
  /// @param order the order of an element's bytes
  record Strided(List<Long> strides, ByteOrder order) implements Encoding {
    public Strided {
      strides = List.copyOf(strides);
      for (long stride : strides) {
        if (stride < 0) {
          throw new MisuseException("strides must be 0 or more (were " + strides + ")");
        }
      }
    }

    /// Makes the encoding of dense elements whose last axis runs fastest.
    public static Strided rowMajor(TensorShape shape, ByteOrder order) {
      return dense(shape, order, axis -> shape.rank() - 1 - axis);
    }

    /// Makes the encoding of dense elements whose first axis runs fastest, as in Fortran.
    public static Strided columnMajor(TensorShape shape, ByteOrder order) {
      return dense(shape, order, axis -> axis);
    }

    /// @param axes the axes from the one that runs fastest on
    private static Strided dense(TensorShape shape, ByteOrder order, IntUnaryOperator axes) {
      Long[] strides = new Long[shape.rank()];
      long next = 1;
      for (int i = 0; i < shape.rank(); i++) {
        int axis = axes.applyAsInt(i);
        strides[axis] = next;
        next *= Math.max(1, shape.dimension(axis));
      }
      return new Strided(List.of(strides), order);
    }

    /// How many elements the extent must have for this shape.
    public long span(TensorShape shape) {
      long last = 0;
      for (int axis = 0; axis < shape.rank(); axis++) {
        if (shape.dimension(axis) == 0) {
          return 0;
        }
        last =
            Math.addExact(
                last, Math.multiplyExact(shape.dimension(axis) - 1, (long) strides.get(axis)));
      }
      return last + 1;
    }
  }

  /// The tensor is part of a larger one that lies as memory holds it, such as a rank's columns: its bytes
  /// are rows in the extent, a fixed distance apart.
  ///
  /// @param rows copies from an offset in the extent to an offset in the tensor; together they fill the
  ///     tensor, each byte once
  record Sliced(List<Copy2D> rows) implements Encoding {
    public Sliced {
      rows = List.copyOf(rows);
    }

    /// The bytes of all rows.
    long bytes() {
      return rows.stream().mapToLong(Copy2D::bytes).sum();
    }

    /// The end of the last row, from the extent's start.
    long end() {
      return rows.stream().mapToLong(Copy2D::sourceEnd).max().orElse(0);
    }
  }

  /// The tensor's bytes lie in several extents, possibly of several files, such as shards of
  /// which each rank has saved one.
  ///
  /// @param parts rows of bytes that together fill the tensor, each byte once
  record Joined(List<Part> parts) implements Encoding {
    public Joined {
      parts = List.copyOf(parts);
    }

    /// Rows of bytes in one file.
    ///
    /// @param rows copies from an offset in the file to an offset in the tensor
    public record Part(Location file, Copy2D rows) {}

    /// The bytes of all parts.
    long bytes() {
      return parts.stream().mapToLong(part -> part.rows().bytes()).sum();
    }

    /// Returns the parts of a slice of the tensor.
    ///
    /// @param slices copies from an offset in the tensor to an offset in the slice
    public Joined cut(List<Copy2D> slices) {
      return new Joined(
          parts.stream()
              .flatMap(part ->
                  Copies.composed(part.rows(), slices).stream()
                      .map(rows -> new Part(part.file(), rows)))
              .toList());
    }
  }

  /// Only the format itself can read the elements, for example compressed ones.
  ///
  /// @param name the encoding's name for users, such as `deflated`
  record Decoded(String name, TensorDecoder decoder) implements Encoding {}

  /// The values are computed from the elements of stored tensors, such as codes and scales. The tensor's dtype is F32, to
  /// which they are computed; a load that asks for another type rounds them to it once.
  ///
  /// @param layout the layout's name for users, such as `awq` or `Q4_0`
  /// @param formula the value of an element by its indexes in the whole tensor
  /// @param inputs what the formula loads
  /// @param parameters the formula's parameters
  /// @param rowAxis the tensor's axis whose indexes are the formula's rows: the axes before it
  ///     together are its matrices, and those behind it its columns. -1 if all axes are columns.
  ///     It is mostly the last axis but one
  /// @param first the matrix, row and column of this tensor's first element in the whole tensor
  record Quantised(
      String layout,
      Formula formula,
      List<QuantisedInput> inputs,
      List<Integer> parameters,
      int rowAxis,
      List<Long> first)
      implements Encoding {
    private static final List<Long> START = List.of(0L, 0L, 0L);

    public Quantised {
      inputs = List.copyOf(inputs);
      parameters = List.copyOf(parameters);
      first = List.copyOf(first);
    }

    /// Makes the encoding of a whole tensor, which begins at index 0 of each axis.
    public Quantised(
        String layout,
        Formula formula,
        List<QuantisedInput> inputs,
        List<Integer> parameters,
        int rowAxis) {
      this(layout, formula, inputs, parameters, rowAxis, START);
    }

    /// Returns the product of some axes' sizes.
    public static long product(TensorShape shape, int from, int end) {
      long product = 1;
      for (int axis = from; axis < end; axis++) {
        product = Math.multiplyExact(product, shape.dimension(axis));
      }
      return product;
    }
  }
}
