// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Shuffle;
import java.util.List;
import java.util.stream.IntStream;

/// All samples of a dataset in the order of one epoch. Immutable.
sealed interface SampleSequence permits ShardSequence, BlockSequence, InterleavedSequence {
  /// The number of samples.
  long size();

  /// Tells which samples are at `position` and after it.
  ///
  /// @param count positions, all of them below [#size]
  void collect(long position, long count, RunCollector runs);

  /// @throws MisuseException if a shard's number of samples is negative, or all together
  ///     are more than [EpochOrder#MOST_SAMPLES]
  static SampleSequence of(List<Long> shardSamples, OrderOptions options, long epoch) {
    int[] shards =
        IntStream.range(0, shardSamples.size()).filter(i -> shardSamples.get(i) != 0).toArray();
    return switch (options.shuffle()) {
      case Shuffle.None _, Shuffle.Shards _ -> {
        int[] order = EpochOrder.shards(shards.length, options.shuffle(), epoch);
        yield ofShards(IntStream.of(order).map(i -> shards[i]).toArray(), shardSamples, options);
      }
      case Shuffle.Samples(long seed) -> blocks(shards, shardSamples, 1, seed, epoch);
      case Shuffle.Blocks(long seed, int samples) ->
          blocks(shards, shardSamples, samples, seed, epoch);
    };
  }

  private static SampleSequence blocks(
      int[] shards, List<Long> shardSamples, int samples, long seed, long epoch) {
    return new BlockSequence(new ShardSequence(shards, shardSamples), samples, seed, epoch);
  }

  private static SampleSequence ofShards(
      int[] shards, List<Long> shardSamples, OrderOptions options) {
    ShardSequence oneByOne = new ShardSequence(shards, shardSamples);
    int open = Math.min(options.interleave(), shards.length);
    return open < 2 ? oneByOne : new InterleavedSequence(oneByOne, open, options.interleaveBlock());
  }
}
