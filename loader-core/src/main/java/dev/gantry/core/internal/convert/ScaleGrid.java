// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.convert;

import dev.gantry.core.MisuseException;

/// Says which scale each element of a tensor has. The tensor is a sequence of matrices. Each matrix is cut into
/// blocks, from its first row and column on; the last blocks of an axis may be smaller. The elements of a block
/// share one scale. The scales are stored matrix by matrix, and in a matrix row of blocks by row of blocks.
///
/// @param rows the rows of one matrix
/// @param blockRows the rows of a block, at least 1; more than `rows` counts as `rows`
/// @param blockColumns the columns of a block, at least 1; more than `columns` counts as `columns`
public record ScaleGrid(long matrices, long rows, long columns, long blockRows, long blockColumns) {
  /// The most rows of all matrices, and the most columns, where there are several scales: kernels
  /// count them in 32 bits.
  private static final long MOST = Integer.MAX_VALUE;

  public ScaleGrid {
    MisuseException.requireRange("matrices", matrices, 0, Long.MAX_VALUE);
    MisuseException.requireRange("rows", rows, 0, Long.MAX_VALUE);
    MisuseException.requireRange("columns", columns, 0, Long.MAX_VALUE);
    MisuseException.requireRange("blockRows", blockRows, 1, Long.MAX_VALUE);
    MisuseException.requireRange("blockColumns", blockColumns, 1, Long.MAX_VALUE);
    blockRows = Math.max(1, Math.min(blockRows, rows));
    blockColumns = Math.max(1, Math.min(blockColumns, columns));
    product("elements", matrices, rows, columns);
    long scales =
        product(
            "scales", matrices, Math.ceilDiv(rows, blockRows), Math.ceilDiv(columns, blockColumns));
    if (scales > 1) {
      MisuseException.requireRange("rows of all matrices", matrices * rows, 0, MOST);
      MisuseException.requireRange("columns", columns, 0, MOST);
    }
  }

  /// Returns a grid with one scale for all elements.
  public static ScaleGrid single(long elements) {
    return new ScaleGrid(1, 1, elements, 1, Math.max(1, elements));
  }

  private static long product(String what, long matrices, long rows, long columns) {
    try {
      return Math.multiplyExact(Math.multiplyExact(matrices, rows), columns);
    } catch (ArithmeticException _) {
      throw new MisuseException(
          "too many " + what + ": " + matrices + " x " + rows + " x " + columns);
    }
  }

  public long elements() {
    return matrices * rows * columns;
  }

  /// Returns how many rows of scales a matrix has.
  public long scaleRows() {
    return Math.ceilDiv(rows, blockRows);
  }

  public long scaleColumns() {
    return Math.ceilDiv(columns, blockColumns);
  }

  /// Returns how many scales all matrices have together.
  public long scales() {
    return matrices * scaleRows() * scaleColumns();
  }
}
