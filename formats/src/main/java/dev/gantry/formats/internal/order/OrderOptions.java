// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import java.util.Optional;

/// The options that decide the order of samples and the rank that gets each.
///
/// @param batchSize how many samples one rank's batch has
/// @param interleave how many data files are read in turn, `interleaveBlock` samples of each; 1 reads one
///     file after the other. It has no effect where samples or blocks of indexed files are shuffled, which
///     mixes all files already
/// @param rank this rank's number, from 0
/// @param world how many ranks there are; all have the same number of batches
/// @param weights by which samples are drawn; then `shuffle` and `interleave` have no effect
public record OrderOptions(
    int batchSize,
    LastBatch lastBatch,
    Shuffle shuffle,
    int interleave,
    int interleaveBlock,
    int rank,
    int world,
    Optional<SampleWeights> weights) {
  /// The most samples that a batch may have.
  public static final int MAX_BATCH_SIZE = 1 << 24;

  public OrderOptions {
    MisuseException.requireRange("batch size", batchSize, 1, MAX_BATCH_SIZE);
    MisuseException.requireRange("interleave", interleave, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("interleave block", interleaveBlock, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("world", world, 1, Integer.MAX_VALUE);
    MisuseException.requireRange("rank of " + world, rank, 0, world - 1);
  }

  /// Makes the options of samples that all come once.
  public OrderOptions(
      int batchSize,
      LastBatch lastBatch,
      Shuffle shuffle,
      int interleave,
      int interleaveBlock,
      int rank,
      int world) {
    this(batchSize, lastBatch, shuffle, interleave, interleaveBlock, rank, world, Optional.empty());
  }

  /// Returns the same options for samples that are drawn by their weights.
  public OrderOptions withWeights(SampleWeights chosen) {
    return new OrderOptions(
        batchSize,
        lastBatch,
        shuffle,
        interleave,
        interleaveBlock,
        rank,
        world,
        Optional.of(chosen));
  }

  /// Returns the options of part `part` if each rank is split into `parts` ranks, which share its batches
  /// equally.
  ///
  /// @throws MisuseException if the batch size is not a multiple of `parts`
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
        Math.multiplyExact(world, parts),
        weights);
  }

  /// Keeps the order of the files, for one rank.
  public static OrderOptions of(int batchSize) {
    return new OrderOptions(batchSize, LastBatch.KEEP, new Shuffle.None(), 1, 1, 0, 1);
  }
}
