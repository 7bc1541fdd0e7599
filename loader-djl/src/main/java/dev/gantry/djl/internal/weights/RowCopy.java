// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.weights;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDScope;
import ai.djl.ndarray.index.NDIndex;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.util.List;

/// Copies a tensor's values, after its transforms, to a part of an array. The tensor comes as a
/// whole or in pieces of some rows; each piece goes to the positions that the transforms give its
/// rows.
///
/// @param shape the tensor's shape
/// @param target the array, which has the shape of the parameter
/// @param axis the axis of the array along which the values take the positions from `first` on
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

  /// Whether the tensor may come in pieces; a reshape needs all of its rows.
  boolean takesPieces() {
    return transforms.stream().noneMatch(TensorTransform.Reshape.class::isInstance);
  }

  /// @param rows rows of the tensor; all of them unless [#takesPieces]
  /// @param firstRow the number of the first row
  void copy(NDArray rows, long firstRow) {
    // The scope closes the views. A view shares the memory of the array that it was made of, and
    // does not keep that array open.
    try (NDScope scope = new NDScope()) {
      scope.suppressNotUsedWarning();
      NDArray view = rows;
      // Rows lie along this axis of the view, from this position on.
      int rowAxis = 0;
      long position = firstRow;
      TensorShape whole = shape;
      for (TensorTransform transform : transforms) {
        switch (transform) {
          case TensorTransform.Permute(List<Integer> axes) -> {
            view = view.transpose(axes.stream().mapToInt(Integer::intValue).toArray());
            rowAxis = axes.indexOf(rowAxis);
          }
          case TensorTransform.Reshape reshape -> {
            // The view has all rows, and the new shape may have no such axis.
            view = view.reshape(PyTorch.djlShape(reshape.apply(whole)));
            rowAxis = 0;
          }
          case TensorTransform.Part(int axisOfCut, int index, int count) -> {
            long size = whole.dimension(axisOfCut) / count;
            boolean ofRows = axisOfCut == rowAxis;
            view = cut(view, axisOfCut, ofRows ? position : 0, size * index, size * (index + 1));
            position = ofRows ? Math.max(0, position - size * index) : position;
          }
          case TensorTransform.Slice(int axisOfCut, long from, long to) -> {
            boolean ofRows = axisOfCut == rowAxis;
            view = cut(view, axisOfCut, ofRows ? position : 0, from, to);
            position = ofRows ? Math.max(0, position - from) : position;
          }
          case TensorTransform.Pad(int padded, long size) ->
              zero(padded, whole.dimension(padded), size);
        }
        whole = transform.apply(whole);
      }
      if (view.size() > 0) {
        put(view, rowAxis, position);
      }
    }
  }

  /// Cuts the positions `from` to `to` of an axis out of a view, as far as the view has them.
  ///
  /// @param before the position of the view's first element along the axis
  private static NDArray cut(NDArray view, int axis, long before, long from, long to) {
    long here = view.getShape().get(axis);
    long begin = Math.clamp(from - before, 0, here);
    long end = Math.clamp(to - before, begin, here);
    return view.get(TorchArrays.along(view, axis, begin, end));
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

  /// Sets the positions `from` to `to` along an axis to zero, within the part of the array that the
  /// values take.
  private void zero(int padded, long from, long to) {
    if (from == to) {
      return;
    }
    NDIndex index = new NDIndex();
    for (int i = 0; i < target.getShape().dimension(); i++) {
      long begin = i == axis ? first : 0;
      long length = i == axis ? length() : target.getShape().get(i);
      index.addSliceDim(begin + (i == padded ? from : 0), begin + (i == padded ? to : length));
    }
    // libtorch broadcasts the single value to all elements of the part.
    try (NDArray zero = target.getManager().create(0f)) {
      TorchArrays.copyInto(zero, target, index);
    }
  }
}
