package dev.gantry.formats.dataset;

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

  /// @throws IllegalArgumentException if a shard's number of samples is negative, or all together
  ///     are more than [EpochOrder#MOST_SAMPLES]
  static SampleSequence of(List<Long> shardSamples, OrderOptions options, long epoch) {
    int[] shards =
        IntStream.range(0, shardSamples.size()).filter(i -> shardSamples.get(i) != 0).toArray();
    return switch (options.shuffle()) {
      case Shuffle.None() -> ofShards(shards, shardSamples, options);
      case Shuffle.Shards(long seed) -> {
        int[] order = Permutation.shuffled(shards.length, Mix.key(seed, epoch, 0));
        int[] shuffled = IntStream.of(order).map(i -> shards[i]).toArray();
        yield ofShards(shuffled, shardSamples, options);
      }
      case Shuffle.Blocks(long seed, int samples) ->
          new BlockSequence(new ShardSequence(shards, shardSamples), samples, seed, epoch);
    };
  }

  private static SampleSequence ofShards(
      int[] shards, List<Long> shardSamples, OrderOptions options) {
    ShardSequence oneByOne = new ShardSequence(shards, shardSamples);
    int open = Math.min(options.interleave(), shards.length);
    return open < 2 ? oneByOne : new InterleavedSequence(oneByOne, open, options.interleaveBlock());
  }
}
