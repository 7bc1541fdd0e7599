// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/// Makes a block's parameter from a stored tensor where the two differ in layout. The load applies it on
/// the parameter's device. Immutable.
///
/// A rule for names has a list of these, which apply from first to last:
/// `transpose(), part(0, 1, 3)` transposes the tensor and takes the second third of the rows.
public sealed interface TensorTransform {
  /// Swaps the two axes of a matrix, as for GPT-2, whose weights are stored as `[inputs, outputs]`.
  static TensorTransform transpose() {
    return new Permute(List.of(1, 0));
  }

  /// Puts the tensor's axes into another order: axis `i` of the result is axis `axes[i]` of the
  /// tensor.
  ///
  /// @throws MisuseException if `axes` does not name each of its positions once
  static TensorTransform permute(int... axes) {
    return new Permute(IntStream.of(MisuseException.requireGiven("axes", axes)).boxed().toList());
  }

  /// Gives the elements another shape, in C order. One size may be -1: it is computed from the others, as
  /// in PyTorch.
  ///
  /// @throws MisuseException if a size is less than -1, or more than one is -1
  static TensorTransform reshape(long... sizes) {
    return new Reshape(
        LongStream.of(MisuseException.requireGiven("sizes", sizes)).boxed().toList());
  }

  /// Takes one of `count` equal parts along an axis, such as the keys of a fused query, key and value
  /// projection.
  ///
  /// @param index the part's number, from 0
  /// @throws MisuseException if `index` is not 0 to `count - 1`
  static TensorTransform part(int axis, int index, int count) {
    return new Part(axis, index, count);
  }

  /// Takes the positions `from` (inclusive) to `to` (exclusive) of an axis.
  ///
  /// @throws MisuseException if `from` and `to` are no range of positions
  static TensorTransform slice(int axis, long from, long to) {
    return new Slice(axis, from, to);
  }

  /// Appends zeros along an axis until it has `size` positions, such as for a vocabulary size that the
  /// block rounds up. This must be a rule's last transform.
  static TensorTransform pad(int axis, long size) {
    return new Pad(axis, size);
  }

  /// The shape of the result.
  ///
  /// @throws MisuseException if a tensor of this shape cannot be transformed this way, with the reason
  TensorShape apply(TensorShape shape);

  /// The transform that [#permute] makes.
  record Permute(List<Integer> axes) implements TensorTransform {
    public Permute {
      axes = List.copyOf(MisuseException.requireGiven("axes", axes));
      if (!axes.stream()
          .sorted()
          .toList()
          .equals(IntStream.range(0, axes.size()).boxed().toList())) {
        throw new MisuseException(
            "axes of permute must name each of 0 to "
                + (axes.size() - 1)
                + " once (were "
                + axes
                + ")");
      }
    }

    @Override
    public TensorShape apply(TensorShape shape) {
      if (shape.rank() != axes.size()) {
        throw refused(this, shape, "the tensor must have " + axes.size() + " axes");
      }
      return TensorShape.of(axes.stream().mapToLong(shape::dimension).toArray());
    }

    @Override
    public String toString() {
      return axes.equals(List.of(1, 0)) ? "transpose" : "permute" + axes;
    }
  }

  /// The transform that [#reshape] makes.
  record Reshape(List<Long> sizes) implements TensorTransform {
    public Reshape {
      sizes = List.copyOf(MisuseException.requireGiven("sizes", sizes));
      if (sizes.stream().anyMatch(size -> size < -1)
          || sizes.stream().filter(size -> size == -1).count() > 1) {
        throw new MisuseException(
            "sizes of reshape must be 0 or more, and at most one -1 (were " + sizes + ")");
      }
    }

    @Override
    public TensorShape apply(TensorShape shape) {
      long elements = shape.elements().orElse(-1);
      long[] given = sizes.stream().filter(size -> size >= 0).mapToLong(Long::longValue).toArray();
      long known = TensorShape.of(given).elements().orElse(0);
      boolean fits = sizes.contains(-1L) ? known > 0 && elements % known == 0 : elements == known;
      if (!fits) {
        throw refused(this, shape, "the sizes do not multiply to " + elements + " elements");
      }
      long rest = known == 0 ? 0 : elements / known;
      return TensorShape.of(sizes.stream().mapToLong(size -> size == -1 ? rest : size).toArray());
    }

    @Override
    public String toString() {
      return sizes.stream().map(String::valueOf).collect(Collectors.joining(", ", "reshape[", "]"));
    }
  }

  /// The transform that [#part] makes.
  record Part(int axis, int index, int count) implements TensorTransform {
    public Part {
      MisuseException.requireRange("axis of part", axis, 0, Integer.MAX_VALUE);
      MisuseException.requireRange("count of part", count, 1, Integer.MAX_VALUE);
      MisuseException.requireRange("index of part", index, 0, count - 1L);
    }

    @Override
    public TensorShape apply(TensorShape shape) {
      requireAxis(this, shape, axis);
      if (shape.dimension(axis) % count != 0) {
        throw refused(
            this, shape, "axis " + axis + " does not divide into " + count + " equal parts");
      }
      return withSize(shape, axis, shape.dimension(axis) / count);
    }

    @Override
    public String toString() {
      return "part " + index + " of " + count + " along axis " + axis;
    }
  }

  /// The transform that [#slice] makes.
  record Slice(int axis, long from, long to) implements TensorTransform {
    public Slice {
      MisuseException.requireRange("axis of slice", axis, 0, Integer.MAX_VALUE);
      MisuseException.requireRange("from of slice", from, 0, Long.MAX_VALUE);
      MisuseException.requireRange("to of slice", to, from, Long.MAX_VALUE);
    }

    @Override
    public TensorShape apply(TensorShape shape) {
      requireAxis(this, shape, axis);
      if (to > shape.dimension(axis)) {
        throw refused(this, shape, "axis " + axis + " ends at " + shape.dimension(axis));
      }
      return withSize(shape, axis, to - from);
    }

    @Override
    public String toString() {
      return "slice " + from + ":" + to + " along axis " + axis;
    }
  }

  /// The transform that [#pad] makes.
  record Pad(int axis, long size) implements TensorTransform {
    public Pad {
      MisuseException.requireRange("axis of pad", axis, 0, Integer.MAX_VALUE);
      MisuseException.requireRange("size of pad", size, 0, Long.MAX_VALUE);
    }

    @Override
    public TensorShape apply(TensorShape shape) {
      requireAxis(this, shape, axis);
      if (size < shape.dimension(axis)) {
        throw refused(
            this, shape, "axis " + axis + " has " + shape.dimension(axis) + " positions already");
      }
      return withSize(shape, axis, size);
    }

    @Override
    public String toString() {
      return "pad axis " + axis + " to " + size;
    }
  }

  private static void requireAxis(TensorTransform transform, TensorShape shape, int axis) {
    if (axis >= shape.rank()) {
      throw refused(transform, shape, "there is no axis " + axis);
    }
  }

  private static TensorShape withSize(TensorShape shape, int axis, long size) {
    List<Long> sizes = new ArrayList<>();
    for (int i = 0; i < shape.rank(); i++) {
      sizes.add(i == axis ? size : shape.dimension(i));
    }
    return TensorShape.of(sizes.stream().mapToLong(Long::longValue).toArray());
  }

  private static MisuseException refused(
      TensorTransform transform, TensorShape shape, String reason) {
    return new MisuseException(transform + " cannot be applied to " + shape + ": " + reason);
  }
}
