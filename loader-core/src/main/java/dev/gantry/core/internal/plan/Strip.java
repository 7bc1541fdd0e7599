// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;

/// Rows of bytes in a file, a fixed distance apart, and where they go: a slice of a tensor along an inner
/// axis. One row is an extent.
///
/// @param offset of the first row in the file
/// @param bytes of a row, 1 or more
/// @param rows 1 or more
/// @param pitch from one row's start to the next one's in the file, `bytes` or more
/// @param target where the first row goes, from the start of the memory
/// @param targetPitch as `pitch`, in the memory
public record Strip(
    Location file, long offset, long bytes, long rows, long pitch, long target, long targetPitch) {
  public Strip {
    if (offset < 0 || bytes <= 0 || rows <= 0 || pitch < bytes || targetPitch < bytes) {
      throw new MisuseException(
          "no strip: " + rows + " rows of " + bytes + " bytes, " + pitch + " apart, at " + offset);
    }
  }

  /// Where the last row ends in the file.
  public long end() {
    return Math.addExact(Math.addExact(offset, Math.multiplyExact(rows - 1, pitch)), bytes);
  }

  /// One of the rows.
  Strip row(long index) {
    return new Strip(
        file, offset + index * pitch, bytes, 1, bytes, target + index * targetPitch, bytes);
  }
}
