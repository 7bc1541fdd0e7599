package dev.gantry.formats.internal.batches;

import dev.gantry.core.DType;
import dev.gantry.core.Shape;
import java.util.List;

/// Where the values of one field of a batch lie in its slot.
///
/// @param shape with the batch's axis first
/// @param offset of the first element in bytes from the slot's start; a multiple of the dtype's
///     size
/// @param strides from one element to the next along each axis, in elements; dense in C order where
///     the samples lie end to end
public record FieldView(String name, DType dtype, Shape shape, long offset, List<Long> strides) {
  public FieldView {
    strides = List.copyOf(strides);
  }
}
