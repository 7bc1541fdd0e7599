// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.weights;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.formats.spi.StoredTensor;
import java.util.ArrayList;
import java.util.List;

/// A rank's part of each tensor along one axis, as tensor parallelism cuts them. Immutable.
///
/// @param axis 0 or more
/// @param parts the relative sizes of a fused tensor's parts: each part is cut separately, and a
///     rank gets its piece of each part. A tensor that is not fused has one part
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
    List<StoredTensor.Span> spans = spans(tensor, rank, world);
    return world == 1 ? tensor : tensor.slice(axis, spans);
  }

  private List<StoredTensor.Span> spans(StoredTensor tensor, int rank, int world) {
    long size = tensor.shape().dimension(axis);
    long units = parts.stream().mapToLong(Integer::longValue).sum();
    List<StoredTensor.Span> spans = new ArrayList<>();
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
      spans.add(new StoredTensor.Span(start + rank * own, start + (rank + 1) * own));
      start += length;
    }
    return spans;
  }
}
