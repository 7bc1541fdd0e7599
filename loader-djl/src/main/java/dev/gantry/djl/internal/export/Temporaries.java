// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.export;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.ArrayKind;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/// Views and copies of arrays, closed together.
final class Temporaries implements AutoCloseable {
  private final List<NDArray> arrays = new ArrayList<>();

  private NDArray add(NDArray array) {
    arrays.add(array);
    return array;
  }

  /// Takes the array without its gradient, so that no operation on it is recorded.
  private NDArray values(NDArray array) {
    return array.hasGradient() ? add(array.stopGradient()) : array;
  }

  /// A new array of the type and on the device of another one.
  NDArray create(NDArray like, TensorShape shape) {
    ArrayKind kind = new ArrayKind(Optional.of(PyTorch.dtype(like.getDataType())), shape);
    return add(TorchArrays.create(like.getManager(), kind, like.getDevice()));
  }

  /// Takes the positions `from` to `to`, exclusive, of an axis.
  NDArray cut(NDArray array, int axis, long from, long to) {
    return add(values(array).get(TorchArrays.along(array, axis, from, to)));
  }

  /// Undoes the transforms that come after the last cut.
  NDArray undone(NDArray value, Place place) {
    return undone(values(value), place, place.cut(), place.transforms().size());
  }

  /// Undoes the transforms that concern all of a tensor.
  NDArray undoneWhole(NDArray base, Place place) {
    return undone(base, place, 0, place.whole());
  }

  private NDArray undone(NDArray value, Place place, int from, int to) {
    NDArray last = value;
    for (int i = to - 1; i >= from; i--) {
      TensorShape before = place.shapes().get(i);
      last =
          switch (place.transforms().get(i)) {
            case TensorTransform.Permute(List<Integer> order) ->
                add(last.transpose(inverse(order)));
            case TensorTransform.Reshape _ -> add(last.reshape(PyTorch.djlShape(before)));
            case TensorTransform.Pad(int axis, _) -> cut(last, axis, 0, before.dimension(axis));
            case TensorTransform.Part _, TensorTransform.Slice _ ->
                throw new IllegalStateException(place.toString());
          };
    }
    return last;
  }

  /// The axes of a cut value in the order of those that it was cut from.
  NDArray inBase(NDArray value, Place place) {
    return add(value.transpose(inverse(place.axes())));
  }

  private static int[] inverse(List<Integer> order) {
    return IntStream.range(0, order.size()).map(order::indexOf).toArray();
  }

  @Override
  public void close() {
    arrays.forEach(NDArray::close);
  }
}
