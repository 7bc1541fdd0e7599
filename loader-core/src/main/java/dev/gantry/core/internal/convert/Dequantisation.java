// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.DType;
import dev.gantry.core.MisuseException;
import dev.gantry.core.spi.Formula;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/// Computes elements of a tensor from its inputs by a [Formula], and rounds them to the nearest, ties to even. A result
/// that is too large becomes infinite. NaN has one form in each dtype: 0x7FC0 in BF16, 0x7E00 in F16, 0x7FC00000 in
/// F32. Immutable.
public final class Dequantisation {
  /// The dtypes that results can have.
  public static final Set<DType> TARGETS = Set.of(DType.BF16, DType.F16, DType.F32);

  /// The most inputs, parameters and axes of an input that the kernel's parameter can hold.
  static final int MAX_INPUTS = 6;

  static final int MAX_PARAMETERS = 4;
  static final int MAX_AXES = 3;

  /// The elements that are computed: a box of the tensor's elements.
  ///
  /// @param first the indexes of the first element in the whole tensor
  /// @param size the size of the box
  public record Box(Indexes first, Indexes size) {
    public Box {
      // The end of the box is an index, too, and columns are computed in chunks.
      long end = Math.max(first.matrix() + size.matrix(), first.row() + size.row());
      MisuseException.requireRange(
          "the end of a part of a quantised tensor",
          Math.max(end, first.column() + size.column()),
          0,
          Integer.MAX_VALUE - FormulaTape.MAX_RUN);
    }

    /// Returns how many elements are in the box.
    public long elements() {
      return Math.multiplyExact(Math.multiplyExact(size.matrix(), size.row()), size.column());
    }
  }

  /// Indexes below 2³¹, since kernels compute with 32 bits.
  public record Indexes(long matrix, long row, long column) {
    public Indexes {
      for (long one : new long[] {matrix, row, column}) {
        MisuseException.requireRange("an index of a quantised tensor", one, 0, Integer.MAX_VALUE);
      }
    }
  }

  /// An input in memory, which may be only the part that the box needs.
  ///
  /// @param bytes the size of the memory
  /// @param strides bytes from one index to the next, for each axis
  /// @param start the offset in the whole input at which the memory begins, by these strides
  public record Input(long bytes, List<Long> strides, long start) {
    public Input {
      strides = List.copyOf(strides);
      MisuseException.requireRange("axes of an input", strides.size(), 0, MAX_AXES);
    }

    long stride(int axis) {
      return axis < strides.size() ? strides.get(axis) : 0;
    }
  }

  private final FormulaTape tape;
  private final DType to;
  private final Box box;
  private final List<Input> inputs;
  private final List<Integer> parameters;

  /// @param formula the formula of an element, whose result is an F32 number
  /// @param to one of [#TARGETS]
  public Dequantisation(
      Formula formula, DType to, Box box, List<Input> inputs, List<Integer> parameters) {
    if (!formula.isReal()) {
      throw new MisuseException("a formula must give an F32 number");
    }
    this.tape = FormulaTape.of(formula);
    this.to = requireTarget(to);
    this.box = box;
    this.inputs = List.copyOf(inputs);
    this.parameters = List.copyOf(parameters);
    MisuseException.requireRange("inputs", inputs.size(), 1, MAX_INPUTS);
    MisuseException.requireRange("parameters", parameters.size(), 0, MAX_PARAMETERS);
    if (box.elements() > Long.MAX_VALUE / Float.BYTES) {
      throw new MisuseException("too many elements: " + box);
    }
  }

  static DType requireTarget(DType to) {
    if (!TARGETS.contains(to)) {
      throw new MisuseException(
          "the target's dtype must be one of "
              + TARGETS.stream().sorted().toList()
              + " (was "
              + to
              + ")");
    }
    return to;
  }

  FormulaTape tape() {
    return tape;
  }

  public DType to() {
    return to;
  }

  Box box() {
    return box;
  }

  List<Input> inputs() {
    return inputs;
  }

  List<Integer> parameters() {
    return parameters;
  }

  public long targetBytes() {
    return box.elements() * (to.bits() / Byte.SIZE);
  }

  /// A dequantisation and its memory, all of which is on one device.
  ///
  /// @param sources the addresses of the inputs, which need no alignment
  /// @param target the address of the results, aligned to the size of an element; the results
  ///     overlap no input
  public record Task(Dequantisation what, List<Long> sources, long target) {
    public Task {
      sources = List.copyOf(sources);
      Objects.checkIndex(sources.size(), what.inputs.size() + 1);
      int alignment = what.to.alignmentBytes();
      long bytes = what.targetBytes();
      if (bytes > 0 && target % alignment != 0) {
        throw new MisuseException(
            "the target's address must be a multiple of " + alignment + " (was " + target + ")");
      }
      for (int i = 0; i < sources.size(); i++) {
        if (target < sources.get(i) + what.inputs.get(i).bytes()
            && sources.get(i) < target + bytes) {
          throw new MisuseException("the target overlaps what it is made of");
        }
      }
    }
  }
}
