// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core;

import java.nio.file.Path;

/// A range of a file: `length` bytes of `file` from `offset` on.
///
/// @param offset bytes from the start of the file
/// @param length in bytes, may be 0
public record Extent(Location file, long offset, long length) {
  public Extent {
    MisuseException.requireGiven("file", file);
    if (offset < 0 || length < 0 || offset > Long.MAX_VALUE - length) {
      throw new MisuseException(
          file
              + ": offset and length must be 0 or more, and end at 2⁶³-1 at most (were "
              + offset
              + " and "
              + length
              + ")");
    }
  }

  /// An extent of a file on this machine.
  public Extent(Path file, long offset, long length) {
    this(Location.of(file), offset, length);
  }

  /// The offset just past the last byte.
  public long end() {
    return offset + length;
  }
}
