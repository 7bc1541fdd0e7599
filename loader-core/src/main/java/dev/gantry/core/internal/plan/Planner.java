// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.ExtentRequest.MAX_ALIGNMENT_BYTES;
import static dev.gantry.core.internal.plan.PlanLimits.align;
import static dev.gantry.core.internal.plan.PlanLimits.ceiling;
import static dev.gantry.core.internal.plan.PlanLimits.floor;

import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.internal.plan.ReadPlan.Placement;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.plan.ReadPlan.Relocation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/// Plans the reads of a load: into slabs that it allocates ([ReadPlan]), or into memory of the caller ([ReadIntoPlan]).
///
/// For new slabs, extents are aligned outward to blocks, neighbours are joined to runs, and runs are packed into slabs
/// and split into requests. The offset of an extent in its slab equals its offset in the file modulo
/// [PlanLimits#BLOCK_BYTES], so that direct reads can fill the slab. If that breaks the extent's alignment, it is
/// copied elsewhere in the slabs after the reads. A plan takes the time of a sort, and a few small objects of memory
/// for each extent. Pure; thread-safe.
public final class Planner {
  private final List<ExtentRequest> wanted;
  private final PlanLimits limits;
  private final Runs runs = new Extents();
  private final Placement[] placements;
  private final List<Long> slabSizes = new ArrayList<>();
  private final List<Read> reads = new ArrayList<>();
  private final List<Relocation> relocations = new ArrayList<>();

  /// The bytes of the last slab that are taken; valid if `slabOpen`.
  private long used;

  private boolean slabOpen;

  private Planner(List<ExtentRequest> wanted, PlanLimits limits) {
    this.wanted = wanted;
    this.limits = limits;
    this.placements = new Placement[wanted.size()];
  }

  /// @param wanted extents in any order, which may overlap and repeat
  public static ReadPlan plan(List<ExtentRequest> wanted, PlanLimits limits) {
    return new Planner(wanted, limits).plan();
  }

  /// Plans the aligned reads that bring strided ranges into memory that exists. Ranges near each other share reads,
  /// also those of different parts; overlaps are read once.
  ///
  /// @param parts the ranges of each piece of memory. They fill it, and no byte of it twice
  public static ReadIntoPlan planInto(List<List<StridedRange>> parts, PlanLimits limits) {
    ReadIntoPlan.Builder builder = new ReadIntoPlan.Builder(limits);
    for (int part = 0; part < parts.size(); part++) {
      for (StridedRange range : parts.get(part)) {
        builder.add(part, range);
      }
    }
    return builder.build();
  }

  private ReadPlan plan() {
    for (int i = 0; i < placements.length; i++) {
      Extent extent = extent(i);
      if (extent.length() == 0) {
        placements[i] = Placement.EMPTY;
      } else {
        runs.add(i, extent.file());
      }
    }
    runs.join(limits.gapBytes(), limits.slabBytes());
    slabOpen = false;
    relocate();
    return new ReadPlan(slabSizes, reads, relocations, Arrays.asList(placements));
  }

  /// Joins extents to runs, and gives each extent its place.
  private final class Extents extends Runs {
    @Override
    long start(int i) {
      return extent(i).offset();
    }

    @Override
    long end(int i) {
      return extent(i).end();
    }

    @Override
    void run(Location file, long end, int[] indexes, int first, int next) {
      long start = floor(start(indexes[first]));
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
  }

  /// Reserves `length` bytes at the end of the last slab, or in a new one.
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
      // Relocated tensors are packed closely: padding small ones to whole blocks would waste most
      // of the memory.
      long padded = align(from.length(), MAX_ALIGNMENT_BYTES);
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
