// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.Location;
import java.util.List;

/// The aligned reads that load a set of extents into slabs, and the place of each extent after the
/// reads.
///
/// @param slabSizes the sizes of the slabs to allocate, in bytes, each a multiple of
///     [PlanLimits#BLOCK_BYTES]
/// @param reads in the order of files and offsets
/// @param relocations copies to make after all reads, for extents that would be misaligned otherwise
/// @param placements one for each extent, in the order of the request, after relocation
public record ReadPlan(
    List<Long> slabSizes,
    List<Read> reads,
    List<Relocation> relocations,
    List<Placement> placements) {

  public ReadPlan {
    slabSizes = List.copyOf(slabSizes);
    reads = List.copyOf(reads);
    relocations = List.copyOf(relocations);
    placements = List.copyOf(placements);
  }

  /// One aligned read. Its last block may reach past the end of the file.
  ///
  /// @param fileOffset a multiple of [PlanLimits#BLOCK_BYTES]
  /// @param length a multiple of [PlanLimits#BLOCK_BYTES]
  /// @param required the wanted bytes from `fileOffset` on, which the file must have
  /// @param slab an index into [#slabSizes]
  /// @param slabOffset a multiple of [PlanLimits#BLOCK_BYTES], unless the plan shifts runs: then
  ///     only the `required` bytes may be written
  public record Read(
      Location file, long fileOffset, long length, long required, int slab, long slabOffset) {}

  /// The place of an extent.
  ///
  /// @param slab an index into [#slabSizes], or [#NOWHERE] for an extent of no bytes
  public record Placement(int slab, long offset, long length) {
    public static final int NOWHERE = -1;
    static final Placement EMPTY = new Placement(NOWHERE, 0, 0);
  }

  /// `length` bytes to copy from one slab to another on the same device.
  public record Relocation(int fromSlab, long fromOffset, int toSlab, long toOffset, long length) {}

  /// The places of the extents without the reads.
  public SlabLayout layout() {
    return new SlabLayout(slabSizes, placements);
  }

  /// The number of bytes of all reads together.
  public long readBytes() {
    return reads.stream().mapToLong(Read::length).sum();
  }

  /// The number of bytes of all slabs together.
  public long allocatedBytes() {
    return slabSizes.stream().mapToLong(Long::longValue).sum();
  }
}
