// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.Arrays;
import java.util.List;

/// One shard after the other.
final class ShardSequence implements SampleSequence {
  private final int[] shards;

  /// The position of each shard's first sample, and the number of all samples.
  private final long[] starts;

  /// @param shards in their order, none of them empty
  ShardSequence(int[] shards, List<Long> shardSamples) {
    this.shards = shards;
    this.starts = new long[shards.length + 1];
    for (int i = 0; i < shards.length; i++) {
      long samples = shardSamples.get(shards[i]);
      if (samples < 0 || samples > EpochOrder.MOST_SAMPLES - starts[i]) {
        throw new MisuseException("samples of shards out of range: " + shardSamples);
      }
      starts[i + 1] = starts[i] + samples;
    }
  }

  @Override
  public long size() {
    return starts[shards.length];
  }

  int shards() {
    return shards.length;
  }

  /// The number of the shard at `place` in the dataset.
  int shard(int place) {
    return shards[place];
  }

  long samples(int place) {
    return starts[place + 1] - starts[place];
  }

  @Override
  public void collect(long position, long count, RunCollector runs) {
    int found = Arrays.binarySearch(starts, position);
    int place = found < 0 ? -found - 2 : found;
    long at = position;
    long end = position + count;
    while (at < end) {
      long until = Math.min(end, starts[place + 1]);
      runs.add(shards[place], at - starts[place], until - at);
      at = until;
      place++;
    }
  }
}
