// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.spi.Copy2D;

/// Rows of bytes in a file, a fixed distance apart, and their offsets in a piece of memory. A
/// slice of a tensor along an inner axis is an example. An extent is a strided range of one row.
///
/// @param rows copies from an offset in the file to an offset in the memory
public record StridedRange(Location file, Copy2D rows) {
  /// A range of one row.
  ///
  /// @param extent an extent of one byte or more
  /// @param target offset of the range's first byte in the memory
  public static StridedRange of(Extent extent, long target) {
    return new StridedRange(extent.file(), Copy2D.ofRow(extent.offset(), target, extent.length()));
  }
}
