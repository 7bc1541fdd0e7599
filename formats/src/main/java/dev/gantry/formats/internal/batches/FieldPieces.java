package dev.gantry.formats.internal.batches;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.formats.spi.SampleCatalogue.PieceSink;
import java.util.ArrayList;
import java.util.List;

/// Where the values of one field of a batch lie in the files.
final class FieldPieces implements PieceSink {
  private final long rowBytes;
  private final List<Wanted> pieces = new ArrayList<>();

  /// @param rowBytes of one sample's value
  FieldPieces(long rowBytes) {
    this.rowBytes = rowBytes;
  }

  @Override
  public void piece(Location file, long offset, int samples) {
    pieces.add(new Wanted(new Extent(file, offset, Math.multiplyExact(rowBytes, samples)), 1));
  }

  long rowBytes() {
    return rowBytes;
  }

  int count() {
    return pieces.size();
  }

  void addTo(List<Wanted> wanted) {
    wanted.addAll(pieces);
  }

  /// Where they lie in the slot.
  ///
  /// @param placements of all fields, this one's from `first` on
  PlacedRows placed(List<Placement> placements, int first) {
    PlacedRows rows = new PlacedRows(rowBytes, count());
    for (int i = 0; i < count(); i++) {
      Placement placement = placements.get(first + i);
      rows.add(placement.offset(), placement.length());
    }
    return rows;
  }
}
