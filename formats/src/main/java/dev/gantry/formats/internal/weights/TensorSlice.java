// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.Extent;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;

/// A rank's part of each tensor along one axis, as tensor parallelism cuts them. Immutable.
///
/// @param axis 0 or more
/// @param parts the relative sizes of a fused tensor's parts: each part is cut by itself, and a rank gets
///     its piece of each. A tensor that is not fused has one entry
public record TensorSlice(int axis, List<Integer> parts) {
  public TensorSlice {
    parts = List.copyOf(parts);
  }

  /// Returns the rank's part, under the same name.
  ///
  /// @throws MisuseException if the tensor has no such axis, its size there is not divisible, or its
  ///     encoding cannot be sliced
  public StoredTensor of(StoredTensor tensor, int rank, int world) {
    TensorShape shape = tensor.shape();
    if (axis >= shape.rank()) {
      throw new MisuseException(
          "tensor '" + tensor.name() + "' has shape " + shape + ": it has no axis " + axis);
    }
    List<Span> spans = spans(tensor, rank, world);
    if (world == 1) {
      return tensor;
    }
    if (spans.size() == 1 && axis == 0) {
      return tensor.rows(spans.getFirst().from(), spans.getFirst().to());
    }
    if (!tensor.isPlain() && !(tensor.encoding() instanceof Encoding.Joined)) {
      throw new MisuseException(
          "tensor '%s' does not lie in its file as memory holds it: it has no slices along axis %s"
              .formatted(tensor.name(), axis));
    }
    return slice(tensor, spans, cut(shape, world));
  }

  /// A range of indexes along the axis.
  private record Span(long from, long to) {
    long length() {
      return to - from;
    }
  }

  private List<Span> spans(StoredTensor tensor, int rank, int world) {
    long size = tensor.shape().dimension(axis);
    long units = parts.stream().mapToLong(Integer::longValue).sum();
    List<Span> spans = new ArrayList<>();
    long start = 0;
    for (int part : parts) {
      long length = size / units * part;
      if (size % units != 0 || length % world != 0) {
        throw new MisuseException(
            "tensor '%s' has shape %s: its axis %s of %s%s does not divide by %s ranks"
                .formatted(
                    tensor.name(),
                    tensor.shape(),
                    axis,
                    size,
                    parts.size() == 1 ? "" : ", in parts as " + parts + ",",
                    world));
      }
      long own = length / world;
      spans.add(new Span(start + rank * own, start + (rank + 1) * own));
      start += length;
    }
    return spans;
  }

  private TensorShape cut(TensorShape shape, int world) {
    long[] dimensions = new long[shape.rank()];
    for (int i = 0; i < dimensions.length; i++) {
      dimensions[i] = shape.dimension(i) / (i == axis ? world : 1);
    }
    return TensorShape.of(dimensions);
  }

  private StoredTensor slice(StoredTensor tensor, List<Span> spans, TensorShape part) {
    TensorShape shape = tensor.shape();
    long outer = 1;
    for (int i = 0; i < axis; i++) {
      outer *= shape.dimension(i);
    }
    long innerBits = tensor.dtype().bits();
    for (int i = axis + 1; i < shape.rank(); i++) {
      innerBits *= shape.dimension(i);
    }
    long pitch = bytes(tensor, shape.dimension(axis) * innerBits);
    long targetPitch = bytes(tensor, part.dimension(axis) * innerBits);
    List<Copy2D> rows = new ArrayList<>();
    long target = 0;
    for (Span span : spans) {
      long bytes = bytes(tensor, span.length() * innerBits);
      if (bytes > 0 && outer > 0) {
        long offset = bytes(tensor, span.from() * innerBits);
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

  private long bytes(StoredTensor tensor, long bits) {
    if (bits % Byte.SIZE != 0) {
      throw new MisuseException(
          "a slice of tensor '%s' along axis %s would not be whole bytes of %s"
              .formatted(tensor.name(), axis, tensor.dtype()));
    }
    return bits / Byte.SIZE;
  }
}
