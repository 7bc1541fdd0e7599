// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.batch;

import dev.gantry.core.MisuseException;

/// Samples of a slot that are normalised, with the offset in the same slot to which the results
/// go. Offsets are bytes from the slot's start.
///
/// @param from the offset of the first sample; it needs no alignment
/// @param fromPitch bytes from one sample's start to the next one's, at least the bytes of a
///     sample; unused for a single sample
/// @param to the offset of the results, which lie end to end: a multiple of their element size. The results
///     overlap nothing that is read
public record NormalizedRows(Normalization what, long from, long fromPitch, long to, long rows) {
  public NormalizedRows {
    if (from < 0
        || to < 0
        || rows <= 0
        || to % what.to().alignmentBytes() != 0
        || (rows > 1 && fromPitch < what.fromBytes())) {
      throw new MisuseException(
          "normalise " + rows + " samples from " + from + " to " + to + " at pitch " + fromPitch);
    }
  }

  /// Returns the offset just past the last byte that is read.
  long fromEnd() {
    return Math.addExact(
        from, Math.addExact(Math.multiplyExact(rows - 1, fromPitch), what.fromBytes()));
  }

  /// Returns the offset just past the last byte that is written.
  long toEnd() {
    return Math.addExact(to, Math.multiplyExact(rows, what.toBytes()));
  }

  /// Whether the samples lie end to end before they are normalised.
  public boolean isDense() {
    return rows == 1 || fromPitch == what.fromBytes();
  }
}
