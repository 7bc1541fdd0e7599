// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.spi.Copy2D;
import java.util.ArrayList;
import java.util.List;

/// The aligned reads that bring strided ranges into memory that exists, and where the bytes of
/// each read go. A [ReadPlan] lays out new memory as its reads need it; this plan uses memory as
/// it is, and drops the unwanted bytes of a read.
///
/// @param steps in the order of files and offsets
public record ReadIntoPlan(List<Step> steps) {
  public ReadIntoPlan {
    steps = List.copyOf(steps);
  }

  /// One read.
  ///
  /// @param read a read that belongs to no slab
  /// @param pieces the wanted parts of the read, one or more
  public record Step(Read read, List<Piece> pieces) {
    public Step {
      pieces = List.copyOf(pieces);
    }
  }

  /// Rows of one part within a read.
  ///
  /// @param part an index into the request's parts
  /// @param rows copies from an offset in the read to an offset in the part's memory
  public record Piece(int part, Copy2D rows) {}

  /// The reads of all steps.
  public List<Read> reads() {
    return steps.stream().map(Step::read).toList();
  }

  /// Cuts ranges into steps.
  static final class Builder extends Runs {
    private final PlanLimits limits;
    private final List<StridedRange> ranges = new ArrayList<>();
    private final List<Integer> parts = new ArrayList<>();
    private final List<Step> steps = new ArrayList<>();

    Builder(PlanLimits limits) {
      this.limits = limits;
    }

    /// Adds a range of a part. Reads span it as a whole if the gaps between its rows are small, and otherwise read row
    /// by row.
    void add(int part, StridedRange range) {
      Copy2D rows = range.rows();
      if (rows.rows() == 1 || rows.sourcePitch() - rows.width() <= limits.gapBytes()) {
        addRange(part, range);
      } else {
        for (long row = 0; row < rows.rows(); row++) {
          addRange(part, new StridedRange(range.file(), rows.rows(row, 1)));
        }
      }
    }

    private void addRange(int part, StridedRange range) {
      ranges.add(range);
      parts.add(part);
      add(ranges.size() - 1, range.file());
    }

    ReadIntoPlan build() {
      join(limits.gapBytes(), Long.MAX_VALUE);
      return new ReadIntoPlan(steps);
    }

    @Override
    long start(int range) {
      return ranges.get(range).rows().source();
    }

    @Override
    long end(int range) {
      return ranges.get(range).rows().sourceEnd();
    }

    @Override
    void run(Location file, long end, int[] numbers, int first, int next) {
      long requestBytes = limits.requestBytes();
      long start = PlanLimits.floor(start(numbers[first]));
      int requests = Math.toIntExact(Math.ceilDiv(end - start, requestBytes));
      List<List<Piece>> pieces = new ArrayList<>(requests);
      for (int i = 0; i < requests; i++) {
        pieces.add(new ArrayList<>());
      }
      for (int i = first; i < next; i++) {
        int range = numbers[i];
        int last = (int) ((end(range) - 1 - start) / requestBytes);
        for (int at = (int) ((start(range) - start) / requestBytes); at <= last; at++) {
          long from = start + at * requestBytes;
          addPieces(range, from, from + requestBytes, pieces.get(at));
        }
      }
      for (int i = 0; i < requests; i++) {
        // A request may have no wanted bytes: it can lie within the gap between two rows.
        if (!pieces.get(i).isEmpty()) {
          steps.add(step(file, start + i * requestBytes, pieces.get(i)));
        }
      }
    }

    /// Adds the rows of a range that lie in a request; the first row and the last may be cut.
    private void addPieces(int range, long from, long to, List<Piece> pieces) {
      Copy2D all = ranges.get(range).rows();
      int part = parts.get(range);
      long pitch = all.sourcePitch();
      long first = Math.max(0, (from - all.source()) / pitch);
      long end = Math.min(all.rows(), Math.ceilDiv(to - all.source(), pitch));
      for (long row = first; row < end; row++) {
        long start = all.source() + row * pitch;
        if (start >= from && start + all.width() <= to) {
          long rows = Math.min(end - row, (to - all.width() - start) / pitch + 1);
          pieces.add(new Piece(part, all.rows(row, rows).shifted(-from, 0)));
          row += rows - 1;
        } else {
          long cut = Math.max(0, from - start);
          long bytes = Math.min(all.width(), to - start) - cut;
          if (bytes > 0) {
            pieces.add(new Piece(part, all.partOfRow(row, cut, bytes).shifted(-from, 0)));
          }
        }
      }
    }

    private static Step step(Location file, long offset, List<Piece> pieces) {
      long required = pieces.stream().mapToLong(piece -> piece.rows().sourceEnd()).max().orElse(0);
      return new Step(
          new Read(file, offset, PlanLimits.ceiling(required), required, Placement.NOWHERE, 0),
          pieces);
    }
  }
}
