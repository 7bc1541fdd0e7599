// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.Shuffle;
import java.util.List;
import java.util.stream.IntStream;

/// Gives all samples of a dataset in the order of one epoch. Immutable.
sealed interface SampleSequence
    permits FileSequence, BlockSequence, InterleavedSequence, WeightedSequence {
  /// The number of samples.
  long size();

  /// Collects the samples at `position` and after it.
  ///
  /// @param count how many positions, all of them below [#size]
  void collect(long position, long count, RunCollector runs);

  /// @throws MisuseException if a data file's number of samples is negative, or all together
  ///     are more than [EpochOrder#MAX_SAMPLES]
  static SampleSequence of(List<Long> fileSamples, OrderOptions options, long epoch) {
    int[] files =
        IntStream.range(0, fileSamples.size()).filter(i -> fileSamples.get(i) != 0).toArray();
    if (options.weights().isPresent()) {
      FileSequence all = new FileSequence(files, fileSamples);
      return new WeightedSequence(all, options.weights().get(), epoch);
    }
    return switch (options.shuffle()) {
      case Shuffle.None _, Shuffle.Shards _ -> {
        int[] order = EpochOrder.files(files.length, options.shuffle(), epoch);
        yield ofFiles(IntStream.of(order).map(i -> files[i]).toArray(), fileSamples, options);
      }
      case Shuffle.Samples(long seed) -> blocks(files, fileSamples, 1, seed, epoch);
      case Shuffle.Blocks(long seed, int samples) ->
          blocks(files, fileSamples, samples, seed, epoch);
    };
  }

  private static SampleSequence blocks(
      int[] files, List<Long> fileSamples, int samples, long seed, long epoch) {
    return new BlockSequence(new FileSequence(files, fileSamples), samples, seed, epoch);
  }

  private static SampleSequence ofFiles(int[] files, List<Long> fileSamples, OrderOptions options) {
    FileSequence oneByOne = new FileSequence(files, fileSamples);
    int open = Math.min(options.interleave(), files.length);
    return open < 2 ? oneByOne : new InterleavedSequence(oneByOne, open, options.interleaveBlock());
  }
}
