// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.quantised;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TensorShape;
import dev.gantry.core.spi.Formula;
import dev.gantry.formats.spi.Encoding;
import dev.gantry.formats.spi.QuantisedInput;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Infers from the shapes of a tensor and of its scales which element has which scale.
public final class ScaleShapes {
  private static final int SMALLEST_GUESS = 16;
  private static final int LARGEST_GUESS = 256;

  /// The size of a block, which has one scale, as a model's configuration states it.
  public record Block(long rows, long columns) {
    public Block {
      MisuseException.requireRange("rows of a block", rows, 1, Long.MAX_VALUE);
      MisuseException.requireRange("columns of a block", columns, 1, Long.MAX_VALUE);
    }
  }

  /// The answer of [#fit].
  public sealed interface Fit {
    /// @param rowAxis as in [dev.gantry.formats.spi.Encoding.Quantised]
    /// @param view the shape in which the scales are indexed
    /// @param axes how the formula indexes each axis of that shape
    record Found(int rowAxis, TensorShape view, List<QuantisedInput.Axis> axes) implements Fit {}

    /// @param reason why the scales do not fit the tensor, or why the size of their blocks is unknown
    record None(String reason) implements Fit {}
  }

  private ScaleShapes() {}

  /// Infers which element has which scale. The result is the first rule in this list that the
  /// shapes fit:
  ///
  /// 1. one scale for all elements
  /// 2. a scale for each index of the first axes: `[R]` or `[R, 1]` for rows, `[E, 1, 1]` for matrices, `[O]`
  ///    or `[O, 1, 1, 1]` for convolutions
  /// 3. a scale for each column: `[1, C]`, or `[C]` if that is not also the number of rows
  /// 4. a scale for each block of the last two axes, also in many matrices: `[E, R/b, C/b]`
  ///
  /// @param block the size of blocks as the configuration states it, or null. If it is null, the size on each
  ///     axis is the only power of two from 16 to 256 that fits
  public static Fit fit(TensorShape tensor, TensorShape scales, @Nullable Block block) {
    try {
      return find(tensor, scales, block);
    } catch (MisuseException | ArithmeticException e) {
      return new Fit.None(both(tensor, scales) + ": too large: " + e.getMessage());
    }
  }

  private static Fit find(TensorShape tensor, TensorShape scales, @Nullable Block block) {
    long[] of = tensor.toArray();
    long[] given = withoutTrailingOnes(scales.toArray());
    int lastRow = Math.max(-1, of.length - 2);
    if (block != null && scales.rank() == of.length && of.length > 1) {
      Fit stated = blocks(tensor, scales, block);
      if (stated instanceof Fit.Found || given.length == 0) {
        return stated;
      }
    }
    if (given.length == 0) {
      return new Fit.Found(lastRow, TensorShape.of(), List.of());
    }
    if (given.length <= of.length && Arrays.equals(given, Arrays.copyOf(of, given.length))) {
      long[] view = {
        Encoding.Quantised.product(tensor, 0, given.length - 1), given[given.length - 1]
      };
      return of.length == 1
          ? new Fit.Found(
              -1, TensorShape.of(given), List.of(QuantisedInput.Axis.of(Formula.Axis.COLUMN)))
          : new Fit.Found(
              given.length - 1,
              TensorShape.of(view),
              List.of(
                  QuantisedInput.Axis.of(Formula.Axis.MATRIX),
                  QuantisedInput.Axis.of(Formula.Axis.ROW)));
    }
    if (of.length == 0) {
      return new Fit.None(both(tensor, scales) + ": a scalar has one scale");
    }
    long columns = of[of.length - 1];
    if (scales.rank() <= of.length
        && given[given.length - 1] == columns
        && scales.elements().orElse(-1) == columns) {
      return new Fit.Found(
          lastRow, TensorShape.of(columns), List.of(QuantisedInput.Axis.of(Formula.Axis.COLUMN)));
    }
    return blocks(tensor, scales, block);
  }

  private static Fit blocks(TensorShape tensor, TensorShape scales, @Nullable Block block) {
    int rank = tensor.rank();
    if (scales.rank() != rank) {
      return new Fit.None(
          both(tensor, scales) + ": scales of blocks have as many axes as their tensor");
    }
    for (int axis = 0; axis < rank - 2; axis++) {
      if (tensor.dimension(axis) != scales.dimension(axis)) {
        return new Fit.None(both(tensor, scales) + ": axis " + axis + " differs");
      }
    }
    long rows = rank == 1 ? 1 : tensor.dimension(rank - 2);
    long scaleRows = rank == 1 ? 1 : scales.dimension(rank - 2);
    long columns = tensor.dimension(rank - 1);
    long scaleColumns = scales.dimension(rank - 1);
    long matrices = Encoding.Quantised.product(tensor, 0, rank - 2);
    long blockRows = block == null ? guess(rows, scaleRows) : block.rows();
    long blockColumns = block == null ? guess(columns, scaleColumns) : block.columns();
    if (blockRows == 0 || blockColumns == 0) {
      return new Fit.None(
          both(tensor, scales)
              + ": no block of "
              + SMALLEST_GUESS
              + " to "
              + LARGEST_GUESS
              + " fits; the size of blocks must be given (weight_block_size)");
    }
    if (Math.ceilDiv(rows, blockRows) != scaleRows
        || Math.ceilDiv(columns, blockColumns) != scaleColumns) {
      return new Fit.None(
          both(tensor, scales)
              + ": blocks of "
              + blockRows
              + " x "
              + blockColumns
              + " need "
              + Math.ceilDiv(rows, blockRows)
              + " x "
              + Math.ceilDiv(columns, blockColumns)
              + " scales");
    }
    return new Fit.Found(
        Math.max(-1, rank - 2),
        TensorShape.of(matrices, scaleRows, scaleColumns),
        List.of(
            QuantisedInput.Axis.of(Formula.Axis.MATRIX),
            QuantisedInput.Axis.of(Formula.Axis.ROW, blockRows),
            QuantisedInput.Axis.of(Formula.Axis.COLUMN, blockColumns)));
  }

  /// Returns how many elements of an axis share a scale, or 0 if that is unknown. No two powers of two fit more
  /// than one scale.
  private static long guess(long elements, long scales) {
    if (scales == elements) {
      return 1;
    }
    if (scales == 1) {
      return elements;
    }
    for (long size = SMALLEST_GUESS; size <= LARGEST_GUESS; size *= 2) {
      if (Math.ceilDiv(elements, size) == scales) {
        return size;
      }
    }
    return 0;
  }

  private static long[] withoutTrailingOnes(long[] dimensions) {
    int rank = dimensions.length;
    while (rank > 0 && dimensions[rank - 1] == 1) {
      rank--;
    }
    return Arrays.copyOf(dimensions, rank);
  }

  private static String both(TensorShape tensor, TensorShape scales) {
    return "scales of shape " + scales + " for a tensor of shape " + tensor;
  }
}
