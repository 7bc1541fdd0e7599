// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.batches;

import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.formats.internal.order.BatchBounds;
import java.util.List;

/// The most bytes that are read for any batch, rounded to blocks and with the gaps between.
///
/// Whatever is read is in a block with bytes that are wanted, or in a gap to others. So wanted
/// bytes that lie together take what they are, what completes their first and their last block, and
/// one gap. That holds for each value by itself, and for all values of a run, with what is between
/// them: the bound is the lesser of both. Bounds past any memory are [Long#MAX_VALUE].
final class ReadBound {
  /// What completes two blocks.
  private static final long EDGES = 2L * (PlanLimits.BLOCK_BYTES - 1);

  private final List<Long> fileSamples;
  private final BatchBounds bounds;
  private final long gap;

  ReadBound(List<Long> fileSamples, BatchBounds bounds, PlanLimits limits) {
    this.fileSamples = fileSamples;
    this.bounds = bounds;
    this.gap = floor(limits.gapBytes());
  }

  /// @param valueBytes of one sample
  /// @param spacing the most from the start of one sample's value to the next one's
  long bytes(long valueBytes, long spacing) {
    long single = sum(floor(sum(valueBytes, EDGES)), gap);
    long first = sum(sum(valueBytes, EDGES), gap);
    long ofBatch = either(bounds.samples(), bounds.runs(), single, first, spacing);
    // Nothing is read twice.
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
