// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/// A contiguous part of a copy, as the kernels that include `copy_piece.cuh` read it.
public final class CopyPiece {
  /// The size of the struct `Piece` in `copy_piece.cuh`.
  public static final int BYTES = 3 * Long.BYTES;

  /// The threads of a block; the same number is in `copy_piece.cuh`.
  public static final int THREADS = 256;

  private CopyPiece() {}

  /// Writes a copy to a kernel's table, as pieces of at most `most` bytes.
  ///
  /// @param index the index of the first piece in the table
  /// @return the index after the last piece
  public static long write(
      MemorySegment table, long index, long source, long target, long bytes, long most) {
    long next = index;
    for (long done = 0; done < bytes; done += most) {
      long at = next++ * BYTES;
      table.set(ValueLayout.JAVA_LONG, at, source + done);
      table.set(ValueLayout.JAVA_LONG, at + Long.BYTES, target + done);
      table.set(ValueLayout.JAVA_LONG, at + 2 * Long.BYTES, Math.min(most, bytes - done));
    }
    return next;
  }
}
