package dev.gantry.core.internal.plan;

import dev.gantry.core.MisuseException;

/// How a plan may be cut.
///
/// @param requestBytes the most that one read asks for, a multiple of [#BLOCK_BYTES] up to
///     [#MOST_REQUEST_BYTES]
/// @param gapBytes unwanted bytes between two extents up to which one read takes both: reading them
///     costs less than a request of its own
/// @param slabBytes the size past which no further extent joins a slab, a multiple of
///     [#BLOCK_BYTES]; a larger extent gets a slab to itself. A slab lives as long as its
///     longest-lived tensor, so this bounds what one kept tensor keeps with it
public record PlanLimits(long requestBytes, long gapBytes, long slabBytes) {
  /// The unit of direct I/O: file offsets, lengths and addresses of aligned reads are multiples of
  /// it.
  public static final int BLOCK_BYTES = 4096;

  /// The kernel reads less than 2 GiB at once, no more can be pinned as one buffer, and each reader
  /// that stages pins two of a request's size.
  public static final long MOST_REQUEST_BYTES = 1L << 30;

  /// 8 MiB requests, gaps of up to 256 KiB, slabs of 512 MiB.
  public static final PlanLimits DEFAULT = new PlanLimits(8L << 20, 256L << 10, 512L << 20);

  public PlanLimits {
    checkRequestBytes(requestBytes);
    if (slabBytes <= 0 || slabBytes % BLOCK_BYTES != 0) {
      throw new MisuseException(
          "slabBytes is " + slabBytes + "; it must be a positive multiple of " + BLOCK_BYTES);
    }
    MisuseException.requireRange("gapBytes", gapBytes, 0, Long.MAX_VALUE);
  }

  /// @throws MisuseException if no request can be of this size
  public static void checkRequestBytes(long bytes) {
    if (bytes <= 0 || bytes % BLOCK_BYTES != 0 || bytes > MOST_REQUEST_BYTES) {
      throw new MisuseException(
          "requestBytes is "
              + bytes
              + "; it must be a positive multiple of "
              + BLOCK_BYTES
              + " up to "
              + MOST_REQUEST_BYTES);
    }
  }

  public PlanLimits withRequestBytes(long bytes) {
    return new PlanLimits(bytes, gapBytes, slabBytes);
  }
}
