// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import java.lang.foreign.MemorySegment;

/// The numbers of one tensor of an index, in a mapped file. Thread-safe.
public record MappedColumn(Region region) {
  /// Returns the column's memory, valid until the index is closed. The segment does not notice
  /// when the index is closed, so call this before each use.
  ///
  /// @throws dev.gantry.core.MisuseException if the index is closed
  public MemorySegment bytes() {
    return switch (region.slab()) {
      case null -> MemorySegment.NULL;
      case CpuSlab slab -> slab.segment().asSlice(region.offset(), region.length());
      case DeviceSlab _ -> throw new IllegalStateException("files are mapped for the CPU");
    };
  }

  public static long unsignedInt(MemorySegment bytes, long index) {
    return Integer.toUnsignedLong(bytes.get(Column.INT, index * Integer.BYTES));
  }

  /// Reads a 64-bit number; an unsigned one must have been checked to be less than 2⁶³.
  public static long signedLong(MemorySegment bytes, long index) {
    return bytes.get(Column.LONG, index * Long.BYTES);
  }
}
