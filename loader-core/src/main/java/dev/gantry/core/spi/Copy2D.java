// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.MisuseException;
import java.lang.foreign.MemorySegment;

/// Rows of bytes to copy: the rows lie a fixed distance apart where they come from, and another fixed distance
/// apart where they go. Places are file offsets, offsets in a piece of memory, or addresses.
///
/// @param source where the first row begins
/// @param sourcePitch bytes from one row's start to the next one's; becomes `width` if there is a single row
/// @param target where the first row goes
/// @param targetPitch the same for the target
/// @param width bytes of a row, 1 or more, at most a pitch
/// @param rows 1 or more
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

  /// The bytes of all rows.
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

  /// The same copy with both places moved.
  ///
  /// @param sources bytes to add to the source
  /// @param targets bytes to add to the target
  public Copy2D shifted(long sources, long targets) {
    return new Copy2D(source + sources, sourcePitch, target + targets, targetPitch, width, rows);
  }

  /// Some of the rows.
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

  /// A part of one row.
  ///
  /// @param cut bytes of the row that come before the part
  public Copy2D partOfRow(long row, long cut, long bytes) {
    return ofRow(source + row * sourcePitch + cut, target + row * targetPitch + cut, bytes);
  }
}
