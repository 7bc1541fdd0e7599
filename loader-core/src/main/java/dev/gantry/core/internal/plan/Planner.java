// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.PlanLimits.align;
import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;
import static dev.gantry.core.internal.plan.Wanted.MOST_ALIGNMENT_BYTES;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.ReadPlan.Relocation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// Makes a [ReadPlan]: extents are aligned outward to blocks, neighbours coalesced into runs, runs
/// packed into slabs and split into requests.
///
/// A placement keeps its extent's phase: slab offset and file offset are equal modulo
/// [PlanLimits#BLOCK_BYTES], so that direct reads land where they belong. An extent whose phase
/// breaks its alignment is read in place and relocated. Time is that of sorting, memory a few small
/// objects an extent. Pure; thread-safe.
public final class Planner {
  private final List<Wanted> wanted;
  private final PlanLimits limits;
  private final Placement[] placements;
  private final List<Long> slabSizes = new ArrayList<>();
  private final List<Read> reads = new ArrayList<>();
  private final List<Relocation> relocations = new ArrayList<>();

  /// Bytes taken of the slab being filled; it is the last of `slabSizes` where `slabOpen`.
  private long used;

  private boolean slabOpen;

  private Planner(List<Wanted> wanted, PlanLimits limits) {
    this.wanted = wanted;
    this.limits = limits;
    this.placements = new Placement[wanted.size()];
  }

  /// @param wanted in any order, overlaps and repetitions allowed
  public static ReadPlan plan(List<Wanted> wanted, PlanLimits limits) {
    return new Planner(wanted, limits).plan();
  }

  private ReadPlan plan() {
    Map<Location, Group> groups = new LinkedHashMap<>();
    Group group = new Group();
    @Nullable Location file = null;
    for (int i = 0; i < placements.length; i++) {
      Extent extent = extent(i);
      if (extent.length() == 0) {
        placements[i] = Placement.EMPTY;
        continue;
      }
      if (!extent.file().equals(file)) {
        file = extent.file();
        group = groups.computeIfAbsent(file, _ -> new Group());
      }
      group.add(i, extent);
    }
    groups.forEach((each, extents) -> planFile(each, extents.sorted()));
    slabOpen = false;
    relocate();
    return new ReadPlan(slabSizes, reads, relocations, Arrays.asList(placements));
  }

  /// The extents of one file, as indexes. Most come in their order in the file: those need no sorting, which
  /// takes longer than the rest of a plan.
  private final class Group {
    private int[] indexes = {};
    private int count;
    private boolean inOrder = true;
    private long lastOffset;
    private long lastLength;

    void add(int index, Extent extent) {
      if (count == indexes.length) {
        indexes = Arrays.copyOf(indexes, Math.max(16, 2 * count));
      }
      inOrder &=
          extent.offset() > lastOffset
              || (extent.offset() == lastOffset && extent.length() >= lastLength);
      lastOffset = extent.offset();
      lastLength = extent.length();
      indexes[count++] = index;
    }

    /// By offset, then length, then as they were asked for.
    int[] sorted() {
      return inOrder
          ? Arrays.copyOf(indexes, count)
          : Arrays.stream(indexes, 0, count)
              .boxed()
              .sorted(
                  Comparator.comparingLong((Integer i) -> extent(i).offset())
                      .thenComparingLong(i -> extent(i).length()))
              .mapToInt(Integer::intValue)
              .toArray();
    }
  }

  /// @param indexes of the file's extents, by their offsets
  private void planFile(Location file, int[] indexes) {
    int first = 0;
    while (first < indexes.length) {
      Extent extent = extent(indexes[first]);
      long start = floor(extent.offset());
      long end = extent.end();
      int next = first + 1;
      while (next < indexes.length) {
        extent = extent(indexes[next]);
        if (!joins(extent, start, end)) {
          break;
        }
        end = Math.max(end, extent.end());
        next++;
      }
      placeRun(file, start, end, indexes, first, next);
      first = next;
    }
  }

  /// Whether `extent` joins the run from `start` to `end`: it is near, and the slab stays within its
  /// limit. One that overlaps the run always joins, so that it is not read twice.
  private boolean joins(Extent extent, long start, long end) {
    if (extent.offset() < end) {
      return true;
    }
    return floor(extent.offset()) - ceiling(end) <= limits.gapBytes()
        && ceiling(extent.end()) - start <= limits.slabBytes();
  }

  /// @param indexes of which those between `first` and `next` are the run's
  private void placeRun(Location file, long start, long end, int[] indexes, int first, int next) {
    long length = ceiling(end) - start;
    long base = takeRoom(length);
    int slab = slabSizes.size() - 1;
    for (int at = first; at < next; at++) {
      int i = indexes[at];
      Extent extent = extent(i);
      placements[i] = new Placement(slab, base + (extent.offset() - start), extent.length());
    }
    for (long at = 0; at < length; at += limits.requestBytes()) {
      long part = Math.min(limits.requestBytes(), length - at);
      long required = Math.min(part, end - start - at);
      reads.add(new Read(file, start + at, part, required, slab, base + at));
    }
  }

  /// Reserves `length` bytes from a block's start on in the last slab, or in a new one.
  private long takeRoom(long length) {
    if (slabOpen && used + length <= limits.slabBytes()) {
      used += length;
      slabSizes.set(slabSizes.size() - 1, used);
      return used - length;
    }
    slabSizes.add(length);
    slabOpen = true;
    used = length;
    return 0;
  }

  private void relocate() {
    for (int i = 0; i < placements.length; i++) {
      Placement from = placements[i];
      int alignment = wanted.get(i).alignmentBytes();
      if (from.offset() % alignment == 0) {
        continue;
      }
      // Not to blocks, which would waste most memory of small tensors.
      long padded = align(from.length(), MOST_ALIGNMENT_BYTES);
      long to = takeRoom(padded);
      int slab = slabSizes.size() - 1;
      relocations.add(new Relocation(from.slab(), from.offset(), slab, to, from.length()));
      placements[i] = new Placement(slab, to, from.length());
    }
    slabSizes.replaceAll(PlanLimits::ceiling);
  }

  private Extent extent(int i) {
    return wanted.get(i).extent();
  }
}
