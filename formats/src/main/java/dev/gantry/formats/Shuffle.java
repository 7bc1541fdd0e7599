// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.core.MisuseException;

/// How an epoch's order comes about. Each order is computed from the seed and the epoch's number,
/// so any place of it can be reached at once, and no memory is spent on it.
public sealed interface Shuffle {
  /// The order of the files.
  record None() implements Shuffle {}

  /// Whole shards in random order, each from its first sample to its last.
  record Shards(long seed) implements Shuffle {}

  /// Single samples in random order, over all shards: any sample may come next to any other; yet an
  /// epoch has one of 2^64 orders at most, as many as there are seeds. Streams, which cannot reach
  /// every sample at once, have a shuffle buffer for it.
  record Samples(long seed) implements Shuffle {}

  /// Blocks of consecutive samples in random order, over all shards: one read a block. A batch has
  /// runs of neighbours, so blocks should be much smaller than batches unless the files' samples are
  /// in random order themselves.
  ///
  /// @param samples in a block, 1 or more
  record Blocks(long seed, int samples) implements Shuffle {
    public Blocks {
      MisuseException.requireRange("samples of a block", samples, 1, Integer.MAX_VALUE);
    }
  }
}
