// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.internal.order.BatchBounds;
import java.util.List;

/// Bounds the bytes that are read for any batch, rounded to blocks and with the gaps that are read along.
///
/// Every byte that is read lies in a block with wanted bytes, or in a gap between two such blocks. So a
/// stretch of wanted bytes takes its own length, the rest of its first and its last block, and one gap.
/// This holds for each value by itself, and for all values of a run with the bytes between them: the bound
/// is the lesser of the two. A bound that no memory can hold is [Long#MAX_VALUE].
record ReadBound(List<Long> fileSamples, BatchBounds bounds, long gap) {
  /// The most bytes that complete a stretch's first and last block.
  private static final long EDGES = 2L * (PlanLimits.BLOCK_BYTES - 1);

  ReadBound(List<Long> fileSamples, BatchBounds bounds, PlanLimits limits) {
    this(fileSamples, bounds, floor(limits.gapBytes()));
  }

  /// @param valueBytes the size of one sample's value
  /// @param spacing the most bytes from the start of one sample's value to the next one's
  long bytes(long valueBytes, long spacing) {
    long single = sum(floor(sum(valueBytes, EDGES)), gap);
    long first = sum(sum(valueBytes, EDGES), gap);
    long ofBatch = either(bounds.samples(), bounds.runs(), single, first, spacing);
    // No byte is read twice, so the files' size is a bound, too.
    long ofFiles = 0;
    for (long samples : fileSamples) {
      if (samples > 0 && ofFiles < ofBatch) {
        ofFiles = sum(ofFiles, either(samples, 1, single, first, spacing));
      }
    }
    return Math.min(ofBatch, ofFiles);
  }

  private static long either(long samples, long runs, long single, long first, long spacing) {
    return Math.min(
        product(samples, single), sum(product(runs, first), product(samples - runs, spacing)));
  }

  private static long floor(long bytes) {
    return bytes & -PlanLimits.BLOCK_BYTES;
  }

  static long sum(long bytes, long more) {
    return bytes > Long.MAX_VALUE - more ? Long.MAX_VALUE : bytes + more;
  }

  private static long product(long count, long bytes) {
    return Math.multiplyHigh(count, bytes) != 0 || count * bytes < 0
        ? Long.MAX_VALUE
        : count * bytes;
  }
}
