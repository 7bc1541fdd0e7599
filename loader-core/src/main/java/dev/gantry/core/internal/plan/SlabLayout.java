// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.internal.plan.ReadPlan.Placement;
import java.util.ArrayList;
import java.util.List;

/// The slabs to allocate for pieces of memory, and the place of each piece in them.
///
/// @param slabSizes the sizes of the slabs in bytes
/// @param placements the place of each piece, in the order of the pieces
public record SlabLayout(List<Long> slabSizes, List<Placement> placements) {
  public SlabLayout {
    slabSizes = List.copyOf(slabSizes);
    placements = List.copyOf(placements);
  }

  /// Lays pieces end to end: neighbours share a slab.
  ///
  /// @param lengths the sizes of the pieces in bytes; a piece without bytes gets no place
  /// @param alignment the alignment of each piece in bytes, a power of two
  /// @param slabBytes the most bytes of a slab of several pieces
  public static SlabLayout of(List<Long> lengths, int alignment, long slabBytes) {
    List<Long> slabs = new ArrayList<>();
    List<Placement> placements = new ArrayList<>(lengths.size());
    for (long length : lengths) {
      if (length == 0) {
        placements.add(Placement.EMPTY);
        continue;
      }
      long padded = PlanLimits.align(length, alignment);
      if (slabs.isEmpty() || Math.addExact(slabs.getLast(), padded) > slabBytes) {
        slabs.add(0L);
      }
      long offset = slabs.removeLast();
      placements.add(new Placement(slabs.size(), offset, length));
      slabs.add(offset + padded);
    }
    return new SlabLayout(slabs, placements);
  }

  /// The bytes of all slabs together.
  public long bytes() {
    return slabSizes.stream().reduce(0L, Math::addExact);
  }
}
