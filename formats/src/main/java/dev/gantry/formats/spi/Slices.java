// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.spi;

import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.core.spi.Formula;
import java.util.ArrayList;
import java.util.List;

/// Cuts tensors along an axis.
final class Slices {
  private static final List<Formula.Axis> AXES =
      List.of(Formula.Axis.MATRIX, Formula.Axis.ROW, Formula.Axis.COLUMN);

  private Slices() {}

  private static TensorShape cut(TensorShape shape, int axis, List<StoredTensor.Span> spans) {
    long[] dimensions = shape.toArray();
    dimensions[axis] = spans.stream().mapToLong(StoredTensor.Span::length).sum();
    return TensorShape.of(dimensions);
  }

  static StoredTensor plain(StoredTensor tensor, int axis, List<StoredTensor.Span> spans) {
    TensorShape part = cut(tensor.shape(), axis, spans);
    TensorShape shape = tensor.shape();
    long outer = 1;
    for (int i = 0; i < axis; i++) {
      outer *= shape.dimension(i);
    }
    long innerBits = tensor.dtype().bits();
    for (int i = axis + 1; i < shape.rank(); i++) {
      innerBits *= shape.dimension(i);
    }
    long pitch = bytes(tensor, axis, shape.dimension(axis) * innerBits);
    long targetPitch = bytes(tensor, axis, part.dimension(axis) * innerBits);
    List<Copy2D> rows = new ArrayList<>();
    long target = 0;
    for (StoredTensor.Span span : spans) {
      long bytes = bytes(tensor, axis, span.length() * innerBits);
      if (bytes > 0 && outer > 0) {
        long offset = bytes(tensor, axis, span.from() * innerBits);
        rows.add(new Copy2D(offset, pitch, target, targetPitch, bytes, outer));
      }
      target += bytes;
    }
    Extent extent = tensor.extent();
    if (tensor.encoding() instanceof Encoding.Joined joined) {
      return new StoredTensor(tensor.name(), tensor.dtype(), part, extent, joined.cut(rows));
    }
    if (rows.isEmpty() || (outer == 1 && rows.size() == 1)) {
      // The slice is one contiguous piece.
      long offset = rows.isEmpty() ? 0 : rows.getFirst().source();
      return new StoredTensor(
          tensor.name(),
          tensor.dtype(),
          part,
          new Extent(extent.file(), extent.offset() + offset, target * Math.min(1, outer)));
    }
    return new StoredTensor(tensor.name(), tensor.dtype(), part, extent, new Encoding.Sliced(rows));
  }

  private static long bytes(StoredTensor tensor, int axis, long bits) {
    if (bits % Byte.SIZE != 0) {
      throw new MisuseException(
          "a slice of tensor '%s' along axis %s would not be whole bytes of %s"
              .formatted(tensor.name(), axis, tensor.dtype()));
    }
    return bits / Byte.SIZE;
  }

  /// Cuts the inputs to what the part needs.
  static StoredTensor quantised(
      StoredTensor tensor, Encoding.Quantised layout, int axis, List<StoredTensor.Span> spans) {
    TensorShape shape = tensor.shape();
    int rowAxis = layout.rowAxis();
    // The first axis of those that are one axis of the formula is cut where its indexes are.
    if (axis != 0 && axis != rowAxis && axis != rowAxis + 1) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' is quantised: it has no slices along axis " + axis);
    }
    int place = axis < rowAxis ? 0 : axis == rowAxis ? 1 : 2;
    Formula.Axis of = AXES.get(place);
    int end = axis < rowAxis ? rowAxis : axis == rowAxis ? axis + 1 : shape.rank();
    long factor = Encoding.Quantised.product(shape, axis + 1, end);
    long start = layout.first().get(place);
    List<StoredTensor.Span> whole =
        spans.stream()
            .map(span ->
                new StoredTensor.Span(start + span.from() * factor, start + span.to() * factor))
            .toList();
    // The parts of a fused tensor are counted on from 0.
    long from = spans.size() > 1 ? 0 : whole.getFirst().from();
    List<Long> first = new ArrayList<>(layout.first());
    first.set(place, from);
    Encoding.Quantised part =
        new Encoding.Quantised(
            layout.layout(),
            layout.formula(),
            layout.inputs().stream().map(input -> input.slice(of, whole)).toList(),
            layout.parameters(),
            rowAxis,
            first);
    return new StoredTensor(
        tensor.name(), tensor.dtype(), cut(shape, axis, spans), tensor.extent(), part);
  }
}
