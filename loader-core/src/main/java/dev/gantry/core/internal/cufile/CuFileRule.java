// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.internal.plan.PlanLimits;

/// Chooses how cuFile is called for a read. The choice depends on nothing but the read.
///
/// @param batchBelowBytes smaller reads are submitted in batches; 0 for none
/// @param batchFromDepth the fewest reads that a thread must have to do before it submits them in batches
/// @param streamFromBytes reads of this size or larger are queued on the stream that waits for them;
///     `Long.MAX_VALUE` for none
/// @param streamUnaligned whether reads that are not aligned to 4 KiB are queued on a stream, too
public record CuFileRule(
    long batchBelowBytes, int batchFromDepth, long streamFromBytes, boolean streamUnaligned) {
  /// The most bytes of a read in a batch: for larger reads, libcufile has 64 bounce buffers in compatibility
  /// mode, and was seen to hang where batches need more.
  public static final long MAX_BATCHED_BYTES = 1 << 20;

  /// A way to call cuFile.
  public enum Way {
    /// One call reads once, and returns when the bytes are there. Several threads call at once.
    SYNC,
    /// One call submits many reads.
    BATCH,
    /// One call queues a read on a stream.
    STREAM
  }

  /// The facts about a read from which the rule chooses.
  ///
  /// @param depth how many reads the thread has to do
  /// @param ordered whether other work of a stream waits for the bytes
  public record Question(long bytes, boolean aligned, int depth, boolean ordered) {
    public static Question of(
        long bytes, long fileOffset, long memoryOffset, int depth, boolean ordered) {
      boolean aligned = (bytes | fileOffset | memoryOffset) % PlanLimits.BLOCK_BYTES == 0;
      return new Question(bytes, aligned, depth, ordered);
    }
  }

  /// Chooses synchronous reads on threads, which no measurement has beaten so far.
  public static final CuFileRule DEFAULT =
      new CuFileRule(0, BatchTransfers.MAX_ENTRIES / 4, Long.MAX_VALUE, false);

  /// Chooses batches for reads up to [#MAX_BATCHED_BYTES], wherever a thread has more than one.
  public static final CuFileRule BATCHES = new CuFileRule(Long.MAX_VALUE, 2, Long.MAX_VALUE, true);

  /// Chooses streams for all reads that a stream waits for.
  public static final CuFileRule STREAMS = new CuFileRule(0, 2, 0, true);

  public Way choose(Question read) {
    if (read.ordered()) {
      return read.bytes() >= streamFromBytes && (read.aligned() || streamUnaligned)
          ? Way.STREAM
          : Way.SYNC;
    }
    boolean small = read.bytes() < batchBelowBytes && read.bytes() <= MAX_BATCHED_BYTES;
    return small && read.depth() >= batchFromDepth ? Way.BATCH : Way.SYNC;
  }
}
