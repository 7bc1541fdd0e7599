// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.resident;

import dev.gantry.core.Extent;
import dev.gantry.core.internal.memory.Region;
import dev.gantry.core.internal.memory.Slab;

/// Bytes of a file that lie in a slab.
///
/// @param from the first of them in the file
/// @param to their end in the file
/// @param shift what is added to an offset in the file to get that in the slab
public record FileMapping(Slab slab, long from, long to, long shift) {
  /// Whether these are among them, at an address of this alignment.
  public boolean has(Extent extent, int alignmentBytes) {
    return from <= extent.offset()
        && extent.end() <= to
        && (extent.offset() + shift) % alignmentBytes == 0;
  }

  /// The place of bytes that are among them.
  public Region region(Extent extent) {
    return new Region(slab, extent.offset() + shift, extent.length());
  }
}
