// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;

/// A named field that each sample of a dataset has.
///
/// @param dtype has elements of whole bytes
/// @param shape the shape of one sample's value; a scalar has no axes
public record Field(String name, DType dtype, TensorShape shape) {
  public Field {
    MisuseException.requireGiven("name of the field", name);
    MisuseException.requireGiven("dtype of the field", dtype);
    MisuseException.requireGiven("shape of the field", shape);
    if (name.isEmpty()) {
      throw new MisuseException("a field needs a name");
    }
    if (dtype.bits() % Byte.SIZE != 0) {
      throw new MisuseException("field '" + name + "': " + dtype + " is smaller than a byte");
    }
    if (bytes(dtype, shape) < 0) {
      throw new MisuseException("field '" + name + "': " + dtype + " " + shape + " is too large");
    }
  }

  /// The size of one sample's value in bytes.
  public long sampleBytes() {
    return bytes(dtype, shape);
  }

  private static long bytes(DType dtype, TensorShape shape) {
    long elements = shape.elements().orElse(-1);
    long size = dtype.bits() / Byte.SIZE;
    return elements > Long.MAX_VALUE / size ? -1 : elements * size;
  }
}
