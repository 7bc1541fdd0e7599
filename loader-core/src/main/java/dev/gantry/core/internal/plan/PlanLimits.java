// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.plan;

import dev.gantry.core.MisuseException;

/// Limits of a plan.
///
/// @param requestBytes the most bytes of one read, a multiple of [#BLOCK_BYTES] up to
///     [#MAX_REQUEST_BYTES]
/// @param gapBytes the most unwanted bytes between two extents that one read takes: reading these
///     bytes costs less than a second request
/// @param slabBytes the most bytes of a slab of several extents, a multiple of [#BLOCK_BYTES]; a larger
///     extent gets its own slab. A slab lives as long as its longest-lived tensor, so this bounds
///     how much memory one kept tensor keeps alive
public record PlanLimits(long requestBytes, long gapBytes, long slabBytes) {
  /// The unit of direct I/O: file offsets, lengths and addresses of aligned reads are multiples of
  /// it.
  public static final int BLOCK_BYTES = 4096;

  /// The largest read: the kernel reads less than 2 GiB at once, and no larger buffer can be pinned.
  public static final long MAX_REQUEST_BYTES = 1L << 30;

  /// The most unwanted bytes between two rows that one read takes: reading these bytes from the
  /// page cache costs less than a second read.
  private static final long MAX_ROW_GAP_BYTES = 64 << 10;

  /// 8 MiB requests, gaps of up to 256 KiB, slabs of 512 MiB.
  public static final PlanLimits DEFAULT = new PlanLimits(8L << 20, 256L << 10, 512L << 20);

  public PlanLimits {
    checkRequestBytes(requestBytes);
    requireBlocks("slabBytes", slabBytes, Long.MAX_VALUE);
    MisuseException.requireRange("gapBytes", gapBytes, 0, Long.MAX_VALUE);
  }

  /// @throws MisuseException if `bytes` is not a valid size of a request
  public static void checkRequestBytes(long bytes) {
    requireBlocks("optRequestBytes", bytes, MAX_REQUEST_BYTES);
  }

  /// @throws MisuseException if the option's `bytes` are not a positive multiple of
  ///     [#BLOCK_BYTES], or exceed `most`
  public static void requireBlocks(String option, long bytes, long most) {
    if (bytes <= 0 || bytes > most || bytes % BLOCK_BYTES != 0) {
      throw new MisuseException(
          option
              + " must be a positive multiple of "
              + BLOCK_BYTES
              + (most == Long.MAX_VALUE ? "" : ", at most " + most)
              + " (was "
              + bytes
              + ")");
    }
  }

  /// Returns the start of the block that holds `offset`.
  public static long floor(long offset) {
    return offset & -BLOCK_BYTES;
  }

  /// Returns the first start of a block at `offset` or after it.
  public static long ceiling(long offset) {
    return align(offset, BLOCK_BYTES);
  }

  /// Returns the smallest multiple of `alignment`, a power of two, that is at least `value`.
  public static long align(long value, int alignment) {
    return Math.addExact(value, alignment - 1) & -alignment;
  }

  public PlanLimits withRequestBytes(long bytes) {
    return new PlanLimits(bytes, gapBytes, slabBytes);
  }

  /// Returns these limits with smaller gaps, for the rows of slices, which have many gaps between
  /// them.
  public PlanLimits forRows() {
    return new PlanLimits(requestBytes, Math.min(gapBytes, MAX_ROW_GAP_BYTES), slabBytes);
  }

  public PlanLimits withSlabBytes(long bytes) {
    return new PlanLimits(requestBytes, gapBytes, bytes);
  }
}
