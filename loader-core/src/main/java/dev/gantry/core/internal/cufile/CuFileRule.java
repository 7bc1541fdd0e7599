// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import dev.gantry.core.internal.plan.PlanLimits;

/// Chooses how cuFile is called for a read. Pure.
///
/// @param batchBelowBytes reads that are smaller are submitted in batches; 0 for none
/// @param batchFromDepth but only where a thread has at least so many of them to do
/// @param streamFromBytes reads that a stream waits for, and that are this large or larger, are queued
///     on the stream; `Long.MAX_VALUE` for none
/// @param streamUnaligned also reads that are not aligned to 4 KiB
public record CuFileRule(
    long batchBelowBytes, int batchFromDepth, long streamFromBytes, boolean streamUnaligned) {
  /// Larger reads never go in batches: in compatibility mode libcufile has 64 bounce buffers for them,
  /// and was seen to hang where batches need more.
  public static final long MAX_BATCHED_BYTES = 1 << 20;

  /// How cuFile is called.
  public enum Way {
    /// A call a read, which returns when the bytes are there. Several threads call at once.
    SYNC,
    /// A call for many reads.
    BATCH,
    /// A call that queues the read on a stream.
    STREAM
  }

  /// What is known about a read.
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

  /// Synchronous reads on threads, which no measurement has beaten so far.
  public static final CuFileRule DEFAULT =
      new CuFileRule(0, BatchTransfers.MAX_ENTRIES / 4, Long.MAX_VALUE, false);

  /// Batches wherever a thread has more than one read, up to [#MAX_BATCHED_BYTES].
  public static final CuFileRule BATCHES = new CuFileRule(Long.MAX_VALUE, 2, Long.MAX_VALUE, true);

  /// Streams wherever there is one.
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
