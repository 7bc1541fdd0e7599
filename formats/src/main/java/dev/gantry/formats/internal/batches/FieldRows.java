// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.spi.Copy2D;
import dev.gantry.formats.spi.SampleCatalogue.PieceSink;
import java.util.ArrayList;
import java.util.List;

/// Collects the offsets of the values of one field of a batch in the files and, after the reads
/// are planned, in the slot.
final class FieldRows implements PieceSink {
  private final long rowBytes;
  private final List<ExtentRequest> pieces = new ArrayList<>();
  private long[] offsets = {};
  private long[] lengths = {};
  private int count;

  /// @param rowBytes the size of one sample's value
  FieldRows(long rowBytes) {
    this.rowBytes = rowBytes;
  }

  @Override
  public void piece(Location file, long offset, int samples) {
    pieces.add(
        new ExtentRequest(new Extent(file, offset, Math.multiplyExact(rowBytes, samples)), 1));
  }

  long rowBytes() {
    return rowBytes;
  }

  List<ExtentRequest> pieces() {
    return pieces;
  }

  /// Records where the pieces lie in the slot.
  ///
  /// @param placements one for each piece
  void place(List<Placement> placements) {
    offsets = new long[placements.size()];
    lengths = new long[placements.size()];
    for (Placement placement : placements) {
      add(placement.offset(), placement.length());
    }
  }

  /// Adds a piece; one that continues the last piece is merged with it.
  private void add(long offset, long length) {
    if (count > 0 && offset == offsets[count - 1] + lengths[count - 1]) {
      lengths[count - 1] += length;
    } else {
      offsets[count] = offset;
      lengths[count] = length;
      count++;
    }
  }

  /// The first value's offset in the slot.
  long first() {
    return offsets[0];
  }

  /// The bytes from one value's start to the next one's, if all values are equally far apart.
  long stride() {
    return count == 1 ? rowBytes : offsets[1] - offsets[0];
  }

  /// Whether an array can view the values without a copy.
  boolean viewable(int elementBytes) {
    return first() % elementBytes == 0
        && stride() % elementBytes == 0
        && (count == 1 || (lengths[0] == rowBytes && alike(0) == count));
  }

  /// Adds the copies that pack the values end to end from `target` on.
  void pack(long target, List<Copy2D> copies) {
    long to = target;
    int first = 0;
    while (first < count) {
      int end = alike(first);
      long length = lengths[first];
      int rows = end - first;
      long pitch = rows == 1 ? length : offsets[first + 1] - offsets[first];
      copies.add(new Copy2D(offsets[first], pitch, to, length, length, rows));
      to += length * rows;
      first = end;
    }
  }

  /// Returns the end of the pieces from `first` on that have the same length and are evenly
  /// spaced.
  private int alike(int first) {
    int end = first + 1;
    long pitch = end < count ? offsets[end] - offsets[first] : 0;
    while (end < count
        && lengths[end] == lengths[first]
        && offsets[end] - offsets[end - 1] == pitch
        && pitch >= lengths[first]) {
      end++;
    }
    return end;
  }
}
