// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/// The aligned reads that bring a set of extents into memory that is there already, and which bytes
/// of each read go where. Unlike a [ReadPlan], which aligns memory as its reads need it, this takes
/// memory as it lies: what a read has beside the wanted bytes is left out.
///
/// @param steps in the order of files and offsets
public record ScatterPlan(List<Step> steps) {
  public ScatterPlan {
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

  /// Bytes of one extent within a read.
  ///
  /// @param part the extent's place in the request
  /// @param partOffset bytes from the extent's start
  /// @param offset bytes from the read's start
  public record Piece(int part, long partOffset, long offset, long length) {}

  /// Plans reads from block to block; neighbours share one.
  ///
  /// @param extents in any order; overlaps are read once
  public static ScatterPlan of(List<Extent> extents, PlanLimits limits) {
    Map<Location, List<Integer>> byFile = new LinkedHashMap<>();
    for (int i = 0; i < extents.size(); i++) {
      if (extents.get(i).length() > 0) {
        byFile.computeIfAbsent(extents.get(i).file(), _ -> new ArrayList<>()).add(i);
      }
    }
    List<Step> steps = new ArrayList<>();
    byFile.forEach((file, indexes) -> {
      indexes.sort(Comparator.comparingLong(i -> extents.get(i).offset()));
      for (int first = 0; first < indexes.size(); ) {
        long end = extents.get(indexes.get(first)).end();
        int next = first + 1;
        while (next < indexes.size()
            && floor(extents.get(indexes.get(next)).offset()) - ceiling(end) <= limits.gapBytes()) {
          end = Math.max(end, extents.get(indexes.get(next)).end());
          next++;
        }
        addRun(extents, file, indexes.subList(first, next), end, limits.requestBytes(), steps);
        first = next;
      }
    });
    return new ScatterPlan(steps);
  }

  private static void addRun(
      List<Extent> extents,
      Location file,
      List<Integer> indexes,
      long end,
      long requestBytes,
      List<Step> steps) {
    long start = floor(extents.get(indexes.getFirst()).offset());
    int requests = Math.toIntExact(Math.ceilDiv(end - start, requestBytes));
    List<List<Piece>> pieces = new ArrayList<>(requests);
    for (int i = 0; i < requests; i++) {
      pieces.add(new ArrayList<>());
    }
    for (int i : indexes) {
      Extent extent = extents.get(i);
      for (long at = extent.offset(); at < extent.end(); ) {
        int request = (int) ((at - start) / requestBytes);
        long from = start + request * requestBytes;
        long bytes = Math.min(extent.end(), from + requestBytes) - at;
        pieces.get(request).add(new Piece(i, at - extent.offset(), at - from, bytes));
        at += bytes;
      }
    }
    for (int i = 0; i < requests; i++) {
      // With small requests a gap may be longer than one of them.
      if (!pieces.get(i).isEmpty()) {
        steps.add(step(file, start + i * requestBytes, pieces.get(i)));
      }
    }
  }

  private static Step step(Location file, long offset, List<Piece> pieces) {
    long required =
        pieces.stream().mapToLong(piece -> piece.offset() + piece.length()).max().orElseThrow();
    return new Step(
        new Read(file, offset, ceiling(required), required, Placement.NOWHERE, 0), pieces);
  }
}
