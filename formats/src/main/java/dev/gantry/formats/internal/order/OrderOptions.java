// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;

/// The options that decide which samples come when, and to which rank.
///
/// @param batchSize samples in a batch of one rank
/// @param interleave data files that are read in turn, `interleaveBlock` samples of each; 1 for one
///     file after the other. Where samples or blocks are reached by number and shuffled, all files
///     are mixed already, and it changes nothing
/// @param rank this worker's number, from 0
/// @param world how many workers there are; all have the same number of batches
public record OrderOptions(
    int batchSize,
    LastBatch lastBatch,
    Shuffle shuffle,
    int interleave,
    int interleaveBlock,
    int rank,
    int world) {
  /// The most samples that a batch may have.
  public static final int MOST_BATCH_SIZE = 1 << 24;

  public OrderOptions {
    MisuseException.requireRange("batch size", batchSize, 1, MOST_BATCH_SIZE);
    MisuseException.requireRange("interleave", interleave, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("interleave block", interleaveBlock, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("world", world, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("rank of " + world, rank, 0, world - 1);
  }

  /// The options of one of as many workers for each one here, each with its part of the batch: part `part` of this
  /// one's.
  ///
  /// @throws MisuseException if the batch cannot be cut into as many equal parts
  public OrderOptions part(int part, int parts) {
    if (batchSize % parts != 0) {
      throw new MisuseException(
          "setSampling must be a multiple of the "
              + parts
              + " devices of optDevices (was "
              + batchSize
              + ")");
    }
    return new OrderOptions(
        batchSize / parts,
        lastBatch,
        shuffle,
        interleave,
        interleaveBlock,
        Math.addExact(Math.multiplyExact(rank, parts), part),
        Math.multiplyExact(world, parts));
  }

  /// The order of the files, for one worker.
  public static OrderOptions of(int batchSize) {
    return new OrderOptions(batchSize, LastBatch.KEEP, new Shuffle.None(), 1, 1, 0, 1);
  }
}
