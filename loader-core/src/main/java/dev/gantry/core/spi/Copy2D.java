// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;

/// Rows of bytes to copy. The rows lie a fixed distance (the pitch) apart in the source, and a
/// fixed distance apart in the target. Source and target are file offsets, offsets in memory, or
/// addresses.
///
/// @param source where the first row begins in the source
/// @param sourcePitch bytes from one row's start to the next row's start in the source; becomes
///     `width` if there is a single row
/// @param target where the first row begins in the target
/// @param targetPitch bytes from one row's start to the next row's start in the target; becomes
///     `width` if there is a single row
/// @param width bytes of a row, 1 or more; if there are several rows, at most each pitch
/// @param rows the number of rows, 1 or more
public record Copy2D(
    long source, long sourcePitch, long target, long targetPitch, long width, long rows) {
  public Copy2D {
    if (source < 0 || target < 0 || width <= 0 || rows <= 0) {
      throw new MisuseException(
          "copy of " + rows + " rows of " + width + " bytes from " + source + " to " + target);
    }
    if (rows > 1 && (sourcePitch < width || targetPitch < width)) {
      throw new MisuseException(
          "rows of " + width + " bytes overlap at pitches " + sourcePitch + " and " + targetPitch);
    }
    if (rows == 1) {
      sourcePitch = width;
      targetPitch = width;
    }
  }

  /// A copy of one row.
  public static Copy2D ofRow(long source, long target, long bytes) {
    return new Copy2D(source, bytes, target, bytes, bytes, 1);
  }

  /// Whether the rows are adjacent at both ends, so that one copy moves all of them.
  public boolean isContiguous() {
    return rows == 1 || (sourcePitch == width && targetPitch == width);
  }

  /// The number of bytes of all rows.
  public long bytes() {
    return width * rows;
  }

  /// The end of the last row in the source.
  ///
  /// @throws ArithmeticException if it exceeds a `long`
  public long sourceEnd() {
    return Math.addExact(source, span(sourcePitch));
  }

  /// The end of the last row in the target.
  ///
  /// @throws ArithmeticException if it exceeds a `long`
  public long targetEnd() {
    return Math.addExact(target, span(targetPitch));
  }

  private long span(long pitch) {
    return Math.addExact(Math.multiplyExact(rows - 1, pitch), width);
  }

  /// Returns this copy with its source and its target moved.
  ///
  /// @param sources bytes to add to the source
  /// @param targets bytes to add to the target
  public Copy2D shifted(long sources, long targets) {
    return new Copy2D(source + sources, sourcePitch, target + targets, targetPitch, width, rows);
  }

  /// Returns the copy of `count` of these rows, from row `first` on.
  public Copy2D rows(long first, long count) {
    return new Copy2D(
        source + first * sourcePitch,
        sourcePitch,
        target + first * targetPitch,
        targetPitch,
        width,
        count);
  }

  /// Does the copy in host memory.
  ///
  /// @param from the memory that [#source] is an offset in
  /// @param to the memory that [#target] is an offset in
  public void run(MemorySegment from, MemorySegment to) {
    for (long row = 0; row < rows; row++) {
      MemorySegment.copy(from, source + row * sourcePitch, to, target + row * targetPitch, width);
    }
  }

  /// Returns the copy of a part of one row.
  ///
  /// @param cut the number of bytes of the row before the part
  public Copy2D partOfRow(long row, long cut, long bytes) {
    return ofRow(source + row * sourcePitch + cut, target + row * targetPitch + cut, bytes);
  }
}
