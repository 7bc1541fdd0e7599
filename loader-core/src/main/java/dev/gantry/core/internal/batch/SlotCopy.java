// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.MisuseException;

/// Rows of bytes to copy from one place of a slot to another, on the slot's device. Offsets are
/// bytes from the slot's start.
///
/// @param fromPitch bytes from one row's start to the next one's; unused for a single row
/// @param toPitch likewise
/// @param rowBytes bytes to copy of each row, at most a pitch
public record SlotCopy(long from, long fromPitch, long to, long toPitch, long rowBytes, long rows) {
  public SlotCopy {
    if (from < 0 || to < 0 || rowBytes <= 0 || rows <= 0) {
      throw new MisuseException(
          "copy of " + rows + " rows of " + rowBytes + " bytes from " + from + " to " + to);
    }
    if (rows > 1 && (fromPitch < rowBytes || toPitch < rowBytes)) {
      throw new MisuseException(
          "rows of " + rowBytes + " bytes overlap at pitches " + fromPitch + " and " + toPitch);
    }
  }

  /// Whether the rows are adjacent at both ends, so that one copy moves all of them.
  public boolean isContiguous() {
    return rows == 1 || (fromPitch == rowBytes && toPitch == rowBytes);
  }

  /// The offset just past the last byte that is read.
  public long fromEnd() {
    return Math.addExact(from, extent(fromPitch));
  }

  /// The offset just past the last byte that is written.
  public long toEnd() {
    return Math.addExact(to, extent(toPitch));
  }

  private long extent(long pitch) {
    return Math.addExact(Math.multiplyExact(rows - 1, pitch), rowBytes);
  }
}
