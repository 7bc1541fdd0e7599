// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Extent;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;

/// A range of a file that is mapped into a slab.
///
/// @param from where the range begins in the file, in bytes
/// @param to where the range ends in the file
/// @param shift the difference between an offset in the slab and the same byte's offset in the
///     file
public record FileMapping(Slab slab, long from, long to, long shift) {
  /// Whether the range contains the extent, and the extent's offset in the slab is a multiple of
  /// `alignmentBytes`.
  public boolean has(Extent extent, int alignmentBytes) {
    return from <= extent.offset()
        && extent.end() <= to
        && (extent.offset() + shift) % alignmentBytes == 0;
  }

  /// Returns the region of the slab that holds an extent within the range.
  public Region region(Extent extent) {
    return new Region(slab, extent.offset() + shift, extent.length());
  }
}
