// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats;

import dev.gantry.core.MisuseException;

/// The way in which an epoch's samples are shuffled. Each order is computed from the seed and the epoch's
/// number, so any position of it can be reached at once, and it takes no memory.
public sealed interface Shuffle {
  /// No shuffling: samples come in the order of the files.
  record None() implements Shuffle {}

  /// Whole shards in random order, each from its first sample to its last.
  record Shards(long seed) implements Shuffle {}

  /// Single samples in random order, over all shards: any sample may come next to any other. An epoch has
  /// at most 2^64 orders, one for each seed. Streams cannot reach every sample at once, so they use a
  /// shuffle buffer.
  record Samples(long seed) implements Shuffle {}

  /// Blocks of consecutive samples in random order, over all shards; each block takes one read. Neighbours
  /// in the files stay neighbours in a batch, so blocks should be much smaller than batches unless the
  /// files' samples already are in random order.
  ///
  /// @param samples the samples of a block, 1 or more
  record Blocks(long seed, int samples) implements Shuffle {
    public Blocks {
      MisuseException.requireRange("samples of a block", samples, 1, Integer.MAX_VALUE);
    }
  }
}
