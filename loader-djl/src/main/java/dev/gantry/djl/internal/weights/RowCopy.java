// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.util.List;

/// Copies a tensor's values, transformed, to a place in an array: all at once, or some rows after the
/// other, of which each goes where the transforms put it.
///
/// @param shape the tensor's
/// @param target the array, which has the shape of the parameter
/// @param axis along which the values begin at `first` in the array, and end with their own shape
record RowCopy(
    TensorShape shape, List<TensorTransform> transforms, NDArray target, int axis, long first) {
  /// How many positions of [#axis] the values take.
  long length() {
    TensorShape result = shape;
    for (TensorTransform transform : transforms) {
      result = transform.apply(result);
    }
    return result.rank() == 0 ? 0 : result.dimension(axis);
  }

  /// Whether the array's values are the tensor's as they are stored.
  boolean isWhole() {
    return transforms.isEmpty() && target.getShape().equals(PyTorch.djlShape(shape));
  }

  /// Whether rows can come one after the other: a reshape needs all of them.
  boolean takesPieces() {
    return transforms.stream()
        .noneMatch(transform ->
            switch (transform) {
              case TensorTransform.Reshape _ -> true;
              case TensorTransform.Permute _,
                  TensorTransform.Part _,
                  TensorTransform.Slice _,
                  TensorTransform.Pad _ ->
                  false;
            });
  }

  /// @param rows of the tensor, all of them if it does not take pieces
  /// @param firstRow the first one's number
  void copy(NDArray rows, long firstRow) {
    try (Views views = new Views(rows)) {
      // Rows lie along this axis of the view, from this position on.
      int rowAxis = 0;
      long position = firstRow;
      TensorShape whole = shape;
      for (TensorTransform transform : transforms) {
        switch (transform) {
          case TensorTransform.Permute(List<Integer> axes) -> {
            views.next(views.last().transpose(axes.stream().mapToInt(Integer::intValue).toArray()));
            rowAxis = axes.indexOf(rowAxis);
          }
          case TensorTransform.Reshape reshape ->
              views.next(views.last().reshape(PyTorch.djlShape(reshape.apply(whole))));
          case TensorTransform.Part(int cut, int index, int count) -> {
            long size = whole.dimension(cut) / count;
            position = views.cut(cut, rowAxis, position, size * index, size * (index + 1));
          }
          case TensorTransform.Slice(int cut, long from, long to) ->
              position = views.cut(cut, rowAxis, position, from, to);
          case TensorTransform.Pad(int padded, long size) ->
              zero(padded, whole.dimension(padded), size);
        }
        whole = transform.apply(whole);
      }
      NDArray values = views.last();
      if (values.size() > 0) {
        put(values, rowAxis, position);
      }
    }
  }

  private void put(NDArray values, int rowAxis, long position) {
    Shape there = target.getShape();
    if (values.getShape().equals(there)) {
      TorchArrays.copy(values, target, 0);
      return;
    }
    long[] from = new long[there.dimension()];
    if (from.length > 0) {
      from[rowAxis] += position;
      from[axis] += first;
    }
    NDIndex index = new NDIndex();
    for (int i = 0; i < from.length; i++) {
      index.addSliceDim(from[i], from[i] + values.getShape().get(i));
    }
    TorchArrays.copyInto(values, target, index);
  }

  private void zero(int padded, long from, long to) {
    if (from == to) {
      return;
    }
    // libtorch copies one value to all elements of the part.
    try (NDArray zero = target.getManager().create(0f)) {
      TorchArrays.copyInto(zero, target, TorchArrays.along(target, padded, from, to));
    }
  }

  /// Views of an array, closed together; the array itself stays.
  private static final class Views implements AutoCloseable {
    private NDArray last;
    private boolean isView;

    Views(NDArray source) {
      this.last = source;
    }

    NDArray last() {
      return last;
    }

    /// A view keeps the memory, not the array that it was made of.
    void next(NDArray view) {
      close();
      last = view;
      isView = true;
    }

    /// Keeps positions `from` to `to` of an axis.
    ///
    /// @param position of the first one that is here, along `rowAxis`
    /// @return its position in what is kept
    long cut(int axis, int rowAxis, long position, long from, long to) {
      long before = axis == rowAxis ? position : 0;
      long here = last.getShape().get(axis);
      long begin = Math.clamp(from - before, 0, here);
      long end = Math.clamp(to - before, begin, here);
      next(last.get(TorchArrays.along(last, axis, begin, end)));
      return axis == rowAxis ? Math.max(0, position - from) : position;
    }

    @Override
    public void close() {
      if (isView) {
        last.close();
      }
    }
  }
}
