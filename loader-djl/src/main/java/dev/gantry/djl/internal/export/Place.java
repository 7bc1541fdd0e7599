// SPDX-License-Identifier: Apache-2.0
package dev.gantry.djl.internal.export;

import ai.djl.ndarray.NDArray;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.djl.internal.ndarray.TorchArrays;
import dev.gantry.djl.internal.torch.PyTorch;
import dev.gantry.formats.TensorTransform;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/// Says which part of a tensor becomes a value by a list of transforms. Immutable.
///
/// The first transforms change the whole tensor. The next ones, up to the last that cuts, select a
/// box of the result. The transforms after that change only the value.
///
/// @param shapes the shape before each transform, and the shape after the last one
/// @param whole how many transforms change the whole tensor
/// @param cut how many transforms there are up to and including the last one that cuts
/// @param from where the box begins on each axis of `shapes.get(whole)`
/// @param to where the box ends on each axis, exclusive
/// @param axes the axis of `shapes.get(whole)` for each axis of the value that is cut out
record Place(
    List<TensorTransform> transforms,
    List<TensorShape> shapes,
    int whole,
    int cut,
    List<Long> from,
    List<Long> to,
    List<Integer> axes) {
  /// @throws MisuseException if the transforms do not fit a tensor of this shape, or have a
  ///     reshape between two cuts
  static Place of(TensorShape tensor, List<TensorTransform> transforms) {
    List<TensorShape> shapes = new ArrayList<>(List.of(tensor));
    transforms.forEach(transform -> shapes.add(transform.apply(shapes.getLast())));
    int cut = transforms.size();
    while (cut > 0 && !cuts(transforms.get(cut - 1))) {
      cut--;
    }
    int whole = cut;
    while (whole > 0 && !(transforms.get(whole - 1) instanceof TensorTransform.Reshape)) {
      whole--;
    }
    if (transforms.subList(0, whole).stream().anyMatch(Place::cuts)) {
      throw new MisuseException("a reshape between two cuts cannot be undone");
    }
    TensorShape base = shapes.get(whole);
    long[] from = new long[base.rank()];
    long[] to = base.toArray();
    List<Integer> axes = IntStream.range(0, base.rank()).boxed().toList();
    for (int i = whole; i < cut; i++) {
      switch (transforms.get(i)) {
        case TensorTransform.Permute(List<Integer> order) ->
            axes = order.stream().map(axes::get).toList();
        case TensorTransform.Part(int axis, int index, _) -> {
          long size = shapes.get(i + 1).dimension(axis);
          from[axes.get(axis)] += size * index;
          to[axes.get(axis)] = from[axes.get(axis)] + size;
        }
        case TensorTransform.Slice(int axis, long first, long end) -> {
          to[axes.get(axis)] = from[axes.get(axis)] + end;
          from[axes.get(axis)] += first;
        }
        case TensorTransform.Reshape _, TensorTransform.Pad _ ->
            throw new IllegalStateException(transforms.toString());
      }
    }
    return new Place(
        transforms,
        List.copyOf(shapes),
        whole,
        cut,
        Arrays.stream(from).boxed().toList(),
        Arrays.stream(to).boxed().toList(),
        axes);
  }

  private static boolean cuts(TensorTransform transform) {
    return switch (transform) {
      case TensorTransform.Part _, TensorTransform.Slice _ -> true;
      case TensorTransform.Permute _, TensorTransform.Reshape _, TensorTransform.Pad _ -> false;
    };
  }

  TensorShape value() {
    return shapes.getLast();
  }

  /// The shape that the box is a part of.
  TensorShape base() {
    return shapes.get(whole);
  }

  List<TensorTransform> wholeTransforms() {
    return transforms.subList(0, whole);
  }

  long elements() {
    long elements = 1;
    for (int axis = 0; axis < from.size(); axis++) {
      elements *= to.get(axis) - from.get(axis);
    }
    return elements;
  }

  /// Whether the boxes have an element in common.
  boolean overlaps(Place other) {
    boolean overlaps = true;
    for (int axis = 0; axis < from.size(); axis++) {
      overlaps &=
          Math.max(from.get(axis), other.from.get(axis))
              < Math.min(to.get(axis), other.to.get(axis));
    }
    return overlaps;
  }

  /// Undoes the transforms of a value that come after the last cut.
  NDArray undone(NDArray value) {
    return undone(value, cut, transforms.size());
  }

  /// Undoes the transforms that concern all of a tensor.
  NDArray undoneWhole(NDArray base) {
    return undone(base, 0, whole);
  }

  private NDArray undone(NDArray value, int from, int to) {
    NDArray last = value;
    for (int i = to - 1; i >= from; i--) {
      TensorShape before = shapes.get(i);
      last =
          switch (transforms.get(i)) {
            case TensorTransform.Permute(List<Integer> order) -> last.transpose(inverse(order));
            case TensorTransform.Reshape _ -> last.reshape(PyTorch.djlShape(before));
            case TensorTransform.Pad(int axis, _) ->
                last.get(TorchArrays.along(last, axis, 0, before.dimension(axis)));
            case TensorTransform.Part _, TensorTransform.Slice _ ->
                throw new IllegalStateException(toString());
          };
    }
    return last;
  }

  /// Permutes the axes of a cut value into the order of the tensor that it was cut from.
  NDArray inBase(NDArray value) {
    return value.transpose(inverse(axes));
  }

  private static int[] inverse(List<Integer> order) {
    return IntStream.range(0, order.size()).map(order::indexOf).toArray();
  }

  /// The size of a tensor along one axis, as far as a transformed value tells it.
  ///
  /// @param size the size; 0 if the value tells nothing about it
  /// @param exact whether `size` is the size itself; otherwise it is a lower bound
  record Size(long size, boolean exact) {
    /// Combines two sizes; null if they contradict each other.
    @Nullable Size and(Size other) {
      if (exact && other.exact) {
        return size == other.size ? this : null;
      }
      return exact || (!other.exact && size > other.size) ? this : other;
    }
  }

  /// Returns the size along each axis of a tensor from which the transforms make the value.
  ///
  /// @throws MisuseException if the value does not fit the transforms, or if a transform is a
  ///     reshape, which tells nothing about the tensor's shape
  static List<Size> before(TensorShape value, List<TensorTransform> transforms) {
    Size[] sizes =
        LongStream.of(value.toArray()).mapToObj(size -> new Size(size, true)).toArray(Size[]::new);
    for (TensorTransform transform : transforms.reversed()) {
      switch (transform) {
        case TensorTransform.Permute(List<Integer> order) -> {
          requireAxes(transform, order.size(), sizes.length);
          Size[] after = sizes.clone();
          for (int i = 0; i < after.length; i++) {
            sizes[order.get(i)] = after[i];
          }
        }
        case TensorTransform.Part(int axis, _, int count) -> {
          requireAxis(transform, axis, sizes.length);
          Size part = sizes[axis];
          sizes[axis] = new Size(part.exact ? Math.multiplyExact(part.size, count) : 0, part.exact);
        }
        case TensorTransform.Slice(int axis, _, long to) -> {
          requireAxis(transform, axis, sizes.length);
          sizes[axis] = new Size(to, false);
        }
        case TensorTransform.Pad(int axis, _) -> {
          requireAxis(transform, axis, sizes.length);
          sizes[axis] = new Size(0, false);
        }
        case TensorTransform.Reshape _ ->
            throw new MisuseException(
                transform + " does not tell the tensor's shape; optLike gives the tensors' shapes");
      }
    }
    return List.of(sizes);
  }

  private static void requireAxis(TensorTransform transform, int axis, int rank) {
    if (axis >= rank) {
      requireAxes(transform, axis + 1, rank);
    }
  }

  private static void requireAxes(TensorTransform transform, int axes, int rank) {
    if (axes != rank) {
      throw new MisuseException(
          transform + " needs " + axes + " axes, and the parameter has " + rank);
    }
  }
}
