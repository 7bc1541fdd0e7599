// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import static dev.gantry.core.internal.plan.ExtentRequest.MAX_ALIGNMENT_BYTES;
import static dev.gantry.core.internal.plan.PlanLimits.BLOCK_BYTES;
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
/// For new slabs, extents are aligned outward to blocks, neighbours are joined to runs, and runs
/// are packed into slabs and split into requests. The offset of an extent in its slab equals its
/// offset in the file modulo [PlanLimits#BLOCK_BYTES], so that direct reads can fill the slab. A
/// GPU's memory is filled by copies, which may go to any offset: in it each run is shifted so that
/// most of its bytes lie where a GPU's matrix products are fast. An extent whose offset breaks its
/// alignment is copied to another offset of the slabs after the reads. Planning takes about as
/// long as a sort, and allocates a few small objects for each extent. Pure; thread-safe.
public final class Planner {
  private final List<ExtentRequest> wanted;
  private final PlanLimits limits;
  private final int preferred;
  private final Runs runs = new Extents();
  private final Placement[] placements;
  private final List<Long> slabSizes = new ArrayList<>();
  private final List<Read> reads = new ArrayList<>();
  private final List<Relocation> relocations = new ArrayList<>();

  /// The number of reserved bytes of the last slab; valid if `slabOpen`.
  private long used;

  private boolean slabOpen;

  private Planner(List<ExtentRequest> wanted, PlanLimits limits, int preferred) {
    this.wanted = wanted;
    this.limits = limits;
    this.preferred = preferred;
    this.placements = new Placement[wanted.size()];
  }

  /// Plans reads whose offsets in the slabs are multiples of a block.
  ///
  /// @param wanted extents in any order, which may overlap and repeat
  public static ReadPlan plan(List<ExtentRequest> wanted, PlanLimits limits) {
    return plan(wanted, limits, 1);
  }

  /// Plans reads whose offsets in the slabs are shifted, run by run, so that as many bytes as
  /// possible get a preferred alignment.
  ///
  /// @param preferred the alignment in bytes, a power of two; 1 for no shift
  public static ReadPlan plan(List<ExtentRequest> wanted, PlanLimits limits, int preferred) {
    return new Planner(wanted, limits, preferred).plan();
  }

  /// Plans the aligned reads that bring strided ranges into memory that exists. Ranges near each
  /// other share reads, even ranges of different parts. Bytes that ranges share are read once.
  ///
  /// @param parts the ranges of each piece of memory. They fill all bytes of the piece, each once
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
    // A shifted run may need one block more.
    runs.join(limits.gapBytes(), limits.slabBytes() - (preferred == 1 ? 0 : BLOCK_BYTES));
    slabOpen = false;
    relocate();
    return new ReadPlan(slabSizes, reads, relocations, Arrays.asList(placements));
  }

  /// Joins extents to runs, and sets each extent's offset.
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
      int shift = shift(indexes, first, next);
      long base = takeRoom(ceiling(end - start + shift)) + shift;
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

  /// Returns the number of bytes by which a run's extents are shifted, so that most of their bytes
  /// get the preferred alignment.
  private int shift(int[] indexes, int first, int next) {
    long[] bytes = new long[preferred];
    for (int at = first; at < next; at++) {
      Extent extent = extent(indexes[at]);
      bytes[(int) (-extent.offset() & (preferred - 1))] += extent.length();
    }
    int best = 0;
    for (int shift = 1; shift < preferred; shift++) {
      best = bytes[shift] > bytes[best] ? shift : best;
    }
    return best;
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
