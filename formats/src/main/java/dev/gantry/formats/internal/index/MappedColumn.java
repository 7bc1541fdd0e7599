// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.index;

import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.DeviceSlab;
import dev.gantry.core.internal.memory.Region;
import java.lang.foreign.MemorySegment;

/// The numbers of an index's tensor, in a mapped file. Thread-safe.
record MappedColumn(Region region) {
  /// The column's memory, which is there until the index is closed and does not notice that: ask for it at each use.
  ///
  /// @throws dev.gantry.core.MisuseException if the index is closed
  MemorySegment bytes() {
    return switch (region.slab()) {
      case null -> MemorySegment.NULL;
      case CpuSlab slab -> slab.segment().asSlice(region.offset(), region.length());
      case DeviceSlab _ -> throw new IllegalStateException("files are mapped for the CPU");
    };
  }

  static long unsignedInt(MemorySegment bytes, long index) {
    return Integer.toUnsignedLong(bytes.get(Column.INT, index * Integer.BYTES));
  }

  /// Also of unsigned numbers that have been found to be less than 2⁶³.
  static long signedLong(MemorySegment bytes, long index) {
    return bytes.get(Column.LONG, index * Long.BYTES);
  }
}
