// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.util.Arrays;
import java.util.OptionalLong;
import java.util.stream.Collectors;

/// The dimensions of a tensor, outermost first; no dimensions for a scalar. Immutable.
public final class TensorShape {
  private static final TensorShape SCALAR = new TensorShape(new long[0]);

  private final long[] dimensions;

  private TensorShape(long[] dimensions) {
    this.dimensions = dimensions;
  }

  /// Returns the shape with these dimensions, outermost first; without dimensions, the shape of a
  /// scalar.
  ///
  /// @throws MisuseException if a dimension is negative
  public static TensorShape of(long... dimensions) {
    if (MisuseException.requireGiven("dimensions", dimensions).length == 0) {
      return SCALAR;
    }
    for (long dimension : dimensions) {
      if (dimension < 0) {
        throw new MisuseException(
            "each dimension must be 0 or more (were " + Arrays.toString(dimensions) + ")");
      }
    }
    return new TensorShape(dimensions.clone());
  }

  /// The number of axes; 0 for a scalar.
  public int rank() {
    return dimensions.length;
  }

  /// The number of elements along an axis.
  ///
  /// @param axis from 0 to `rank() - 1`
  public long dimension(int axis) {
    return dimensions[axis];
  }

  /// A copy of the dimensions.
  public long[] toArray() {
    return dimensions.clone();
  }

  /// The number of elements. Empty if a product of the dimensions, from left to right, exceeds 2⁶³-1, even where a
  /// later dimension is 0: the safetensors reference implementation decides likewise.
  public OptionalLong elements() {
    long product = 1;
    for (long dimension : dimensions) {
      if (Math.multiplyHigh(product, dimension) != 0 || product * dimension < 0) {
        return OptionalLong.empty();
      }
      product *= dimension;
    }
    return OptionalLong.of(product);
  }

  /// Returns this shape with its first dimension replaced.
  ///
  /// @throws MisuseException if this is a scalar's shape, or `rows` is negative
  public TensorShape withRows(long rows) {
    if (rank() == 0) {
      throw new MisuseException("a scalar has no rows");
    }
    long[] changed = toArray();
    changed[0] = rows;
    return of(changed);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TensorShape shape && Arrays.equals(dimensions, shape.dimensions);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(dimensions);
  }

  /// The dimensions in brackets, such as `[3, 8]`; `[]` for a scalar.
  @Override
  public String toString() {
    return Arrays.stream(dimensions)
        .mapToObj(Long::toString)
        .collect(Collectors.joining(", ", "[", "]"));
  }
}
