// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import java.util.List;

/// Computes an upper bound of a batch's runs in any epoch. The bound may be too high, except that it is 1
/// where all batches are single runs, since nothing is packed then.
///
/// @param sizes the sizes of the data files that have any samples
record RunBound(List<Long> sizes, long total, OrderOptions options) {
  /// @param samples the most samples of a batch
  static int of(List<Long> fileSamples, OrderOptions options, int samples) {
    List<Long> sizes = fileSamples.stream().filter(size -> size > 0).toList();
    RunBound bound = new RunBound(sizes, sizes.stream().mapToLong(Long::longValue).sum(), options);
    boolean any = samples < 2 || samples > bound.total || options.weights().isPresent();
    return any ? samples : (int) Math.min(samples, bound.runs(samples));
  }

  /// How many data files are interleaved: as in [SampleSequence], never more than there are.
  private int interleave() {
    return Math.min(options.interleave(), sizes.size());
  }

  private long round() {
    return (long) options.batchSize() * options.world();
  }

  /// @param samples a batch's samples: 2 or more, and no more than the dataset has
  private long runs(int samples) {
    return switch (options.shuffle()) {
      case Shuffle.Samples _ -> runsOfBlocks(samples, 1);
      case Shuffle.Blocks(_, int blockSamples) -> runsOfBlocks(samples, blockSamples);
      case Shuffle.None() when interleave() == 1 ->
          aligned() && multiples(sizes.size() - 1) ? 1 : most(samples, wraps());
      case Shuffle.Shards(_) when interleave() == 1 ->
          aligned() && multiples(sizes.size()) ? 1 : most(samples, wraps());
      case Shuffle.None(), Shuffle.Shards(_) -> runsInterleaved(samples);
    };
  }

  /// Whether a batch may continue from the epoch's end to its beginning.
  private boolean wraps() {
    return options.lastBatch() == LastBatch.PAD && total % round() != 0;
  }

  /// Whether each batch begins at a multiple of the batch size.
  private boolean aligned() {
    return switch (options.lastBatch()) {
      case KEEP -> options.world() == 1 || total % round() == 0;
      case DROP -> true;
      case PAD -> !wraps();
    };
  }

  /// Whether each of the first `count` data files holds a multiple of the batch size.
  private boolean multiples(int count) {
    return sizes.stream().limit(count).allMatch(size -> size % options.batchSize() == 0);
  }

  /// Returns the most data files, in any order, over which `window` consecutive samples can spread: the smallest ones lie
  /// between the first and the last, of which the window has one sample each.
  ///
  /// @param circular whether the first data file follows the last one
  private long most(long window, boolean circular) {
    if (window == 1) {
      return 1;
    }
    long[] ascending = sizes.stream().mapToLong(Long::longValue).sorted().toArray();
    int whole = 0;
    long left = window - 2;
    while (whole < ascending.length && ascending[whole] <= left) {
      left -= ascending[whole];
      whole++;
    }
    return Math.min(whole + 2, circular ? sizes.size() + 1 : sizes.size());
  }

  private long runsOfBlocks(int samples, int blockSamples) {
    long blocks;
    if (aligned() && samples % blockSamples == 0) {
      blocks = samples / blockSamples;
    } else if (aligned() && blockSamples % samples == 0) {
      blocks = 1;
    } else {
      blocks = (samples - 2L) / blockSamples + (wraps() ? 3 : 2);
    }
    // Each end of a data file cuts at most one block of the epoch in two.
    long filesOfBlock = most(Math.min(blockSamples, total), true);
    return Math.min(blocks * filesOfBlock, blocks + sizes.size());
  }

  private long runsInterleaved(int samples) {
    // All turns have the full length, except the window's first and last one, and the last one of
    // each data
    // file.
    long last = Math.min(sizes.size(), samples - 2);
    return 2 + last + (samples - 2 - last) / options.interleaveBlock();
  }
}
