// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A contiguous part of a copy, as the kernels that include `copy_piece.cuh` read it.
public final class CopyPiece {
  /// The size of the struct `Piece` in `copy_piece.cuh`.
  public static final int BYTES = 3 * Long.BYTES;

  private CopyPiece() {}

  /// Writes one piece to a kernel's table of pieces.
  public static void write(MemorySegment table, long index, long source, long target, long bytes) {
    long at = index * BYTES;
    table.set(ValueLayout.JAVA_LONG, at, source);
    table.set(ValueLayout.JAVA_LONG, at + Long.BYTES, target);
    table.set(ValueLayout.JAVA_LONG, at + 2 * Long.BYTES, bytes);
  }
}
