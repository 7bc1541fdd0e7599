// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.Field;
import java.util.ArrayList;
import java.util.List;

/// The layout of one field's values in a batch's slot.
///
/// @param shape the shape with the batch's axis first
/// @param offset the first element's offset in bytes from the slot's start; a multiple of the dtype's size
/// @param strides the distance of neighbours along each axis, in elements; dense in C order where the
///     samples lie end to end
public record FieldView(
    String name, DType dtype, TensorShape shape, long offset, List<Long> strides) {
  public FieldView {
    strides = List.copyOf(strides);
  }

  /// Views samples that lie end to end.
  ///
  /// @param shape the shape of one sample's value
  public static FieldView dense(Field field, TensorShape shape, long samples, long offset) {
    return spaced(field, shape, samples, offset, Math.max(1, elements(shape, 0)));
  }

  /// Views samples of the field's own shape that lie end to end.
  public static FieldView dense(Field field, long samples, long offset) {
    return dense(field, field.shape(), samples, offset);
  }

  /// Views samples that are equally far apart.
  ///
  /// @param shape the shape of one sample's value
  /// @param stride the distance of one sample to the next, in elements
  static FieldView spaced(Field field, TensorShape shape, long samples, long offset, long stride) {
    long[] dimensions = new long[shape.rank() + 1];
    List<Long> strides = new ArrayList<>();
    dimensions[0] = samples;
    strides.add(stride);
    for (int axis = 0; axis < shape.rank(); axis++) {
      dimensions[axis + 1] = shape.dimension(axis);
      strides.add(elements(shape, axis + 1));
    }
    return new FieldView(field.name(), field.dtype(), TensorShape.of(dimensions), offset, strides);
  }

  /// Multiplies the sizes of the axes from one on; an empty axis counts as 1, as in PyTorch's strides.
  private static long elements(TensorShape shape, int from) {
    long elements = 1;
    for (int axis = from; axis < shape.rank(); axis++) {
      elements *= Math.max(1, shape.dimension(axis));
    }
    return elements;
  }
}
