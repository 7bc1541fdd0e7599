// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The aligned reads that bring strips into memory. Rows that lie near each other in the file share
/// reads, also rows of several strips; what no strip wants is left out. Pure.
///
/// @param steps in the order of files and offsets
public record StripPlan(List<Step> steps) {
  /// One read takes both of two rows up to so many unwanted bytes apart: from the page cache these cost
  /// less than a second read.
  static final long MOST_GAP_BYTES = 64 << 10;

  public StripPlan {
    steps = List.copyOf(steps);
  }

  /// One read.
  ///
  /// @param read of no slab
  /// @param pieces what of it is wanted, one or more
  public record Step(Read read, List<Piece> pieces) {
    public Step {
      pieces = List.copyOf(pieces);
    }
  }

  /// Rows of one part within a read.
  ///
  /// @param part which of the request's parts
  /// @param offset of the first row, from the read's start
  /// @param target of the first row, from the start of the part's memory
  public record Piece(
      int part, long offset, long bytes, long rows, long pitch, long target, long targetPitch) {}

  private record Ranged(int part, Strip strip) {
    long start() {
      return strip.offset();
    }
  }

  /// Bytes that all reads ask for.
  public long readBytes() {
    return steps.stream().mapToLong(step -> step.read().length()).sum();
  }

  /// @param parts each a piece of memory that strips fill
  public static StripPlan of(List<List<Strip>> parts, PlanLimits limits) {
    long gap = Math.min(limits.gapBytes(), MOST_GAP_BYTES);
    Map<Location, List<Ranged>> byFile = new LinkedHashMap<>();
    for (int part = 0; part < parts.size(); part++) {
      for (Strip strip : parts.get(part)) {
        List<Ranged> ranges = byFile.computeIfAbsent(strip.file(), _ -> new ArrayList<>());
        if (strip.rows() == 1 || strip.pitch() - strip.bytes() <= gap) {
          ranges.add(new Ranged(part, strip));
        } else {
          for (long row = 0; row < strip.rows(); row++) {
            ranges.add(new Ranged(part, strip.row(row)));
          }
        }
      }
    }
    List<Step> steps = new ArrayList<>();
    byFile.forEach((file, ranges) -> {
      ranges.sort(Comparator.comparingLong(Ranged::start));
      for (int first = 0; first < ranges.size(); ) {
        long end = ranges.get(first).strip().end();
        int next = first + 1;
        while (next < ranges.size() && floor(ranges.get(next).start()) - ceiling(end) <= gap) {
          end = Math.max(end, ranges.get(next).strip().end());
          next++;
        }
        addRun(file, ranges.subList(first, next), end, limits.requestBytes(), steps);
        first = next;
      }
    });
    return new StripPlan(steps);
  }

  private static void addRun(
      Location file, List<Ranged> ranges, long end, long requestBytes, List<Step> steps) {
    long start = floor(ranges.getFirst().start());
    int requests = Math.toIntExact(Math.ceilDiv(end - start, requestBytes));
    List<List<Piece>> pieces = new ArrayList<>(requests);
    for (int i = 0; i < requests; i++) {
      pieces.add(new ArrayList<>());
    }
    for (Ranged range : ranges) {
      int first = (int) ((range.start() - start) / requestBytes);
      int last = (int) ((range.strip().end() - 1 - start) / requestBytes);
      for (int request = first; request <= last; request++) {
        long from = start + request * requestBytes;
        addPieces(range, from, from + requestBytes, pieces.get(request));
      }
    }
    for (int i = 0; i < requests; i++) {
      // A row may be longer than a request, and what lies between two rows, too.
      if (!pieces.get(i).isEmpty()) {
        steps.add(step(file, start + i * requestBytes, pieces.get(i)));
      }
    }
  }

  /// The rows that lie in a request, of which the first and the last may be cut.
  private static void addPieces(Ranged range, long from, long to, List<Piece> pieces) {
    Strip strip = range.strip();
    long first = Math.max(0, (from - strip.offset()) / strip.pitch());
    long end = Math.min(strip.rows(), Math.ceilDiv(to - strip.offset(), strip.pitch()));
    for (long row = first; row < end; row++) {
      long start = strip.offset() + row * strip.pitch();
      boolean inside = start >= from && start + strip.bytes() <= to;
      if (inside) {
        long rows = Math.min(end - row, (to - strip.bytes() - start) / strip.pitch() + 1);
        pieces.add(piece(range, from, row, 0, strip.bytes(), rows));
        row += rows - 1;
      } else {
        long cut = Math.max(0, from - start);
        long bytes = Math.min(strip.bytes(), to - start) - cut;
        if (bytes > 0) {
          pieces.add(piece(range, from, row, cut, bytes, 1));
        }
      }
    }
  }

  private static Piece piece(Ranged range, long from, long row, long cut, long bytes, long rows) {
    Strip strip = range.strip();
    return new Piece(
        range.part(),
        strip.offset() + row * strip.pitch() + cut - from,
        bytes,
        rows,
        rows == 1 ? bytes : strip.pitch(),
        strip.target() + row * strip.targetPitch() + cut,
        rows == 1 ? bytes : strip.targetPitch());
  }

  private static Step step(Location file, long offset, List<Piece> pieces) {
    long required = 0;
    for (Piece piece : pieces) {
      required =
          Math.max(required, piece.offset() + (piece.rows() - 1) * piece.pitch() + piece.bytes());
    }
    return new Step(
        new Read(file, offset, ceiling(required), required, Placement.NOWHERE, 0), pieces);
  }
}
