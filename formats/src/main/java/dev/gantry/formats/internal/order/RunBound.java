// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import java.util.List;
import java.util.stream.LongStream;

/// How many runs a batch has at most, in any epoch. It need not be the least such number, but where
/// batches are single runs it is 1, since nothing has to be packed then.
final class RunBound {
  /// The sizes of the data files that have any samples.
  private final long[] sizes;

  private final long total;
  private final OrderOptions options;

  private RunBound(long[] sizes, OrderOptions options) {
    this.sizes = sizes;
    this.total = LongStream.of(sizes).sum();
    this.options = options;
  }

  /// @param samples the most that a batch has
  static int of(List<Long> fileSamples, OrderOptions options, int samples) {
    RunBound bound =
        new RunBound(
            fileSamples.stream().mapToLong(Long::longValue).filter(size -> size > 0).toArray(),
            options);
    boolean any = samples < 2 || samples > bound.total;
    return any ? samples : (int) Math.min(samples, bound.runs(samples));
  }

  /// The data files that take turns: as in [SampleSequence], never more than there are.
  private int interleave() {
    return Math.min(options.interleave(), sizes.length);
  }

  private long round() {
    return (long) options.batchSize() * options.world();
  }

  /// @param samples 2 or more, and no more than there are
  private long runs(int samples) {
    return switch (options.shuffle()) {
      case Shuffle.Samples _ -> runsOfBlocks(samples, 1);
      case Shuffle.Blocks(_, int blockSamples) -> runsOfBlocks(samples, blockSamples);
      case Shuffle.None() when interleave() == 1 ->
          aligned() && multiples(sizes.length - 1) ? 1 : most(samples, wraps());
      case Shuffle.Shards(_) when interleave() == 1 ->
          aligned() && multiples(sizes.length) ? 1 : mostInAnyOrder(samples);
      case Shuffle.None(), Shuffle.Shards(_) -> runsInterleaved(samples);
    };
  }

  /// Whether a batch may hold the epoch's end and its beginning.
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

  /// Whether this many data files hold multiples of the batch size.
  private boolean multiples(int count) {
    return LongStream.of(sizes).limit(count).allMatch(size -> size % options.batchSize() == 0);
  }

  /// The most data files that `window` consecutive samples are in: the first of the samples is then
  /// the last one of its data file.
  private int most(long window, boolean circular) {
    int places = circular ? 2 * sizes.length : sizes.length;
    int most = 0;
    int next = 1;
    long whole = 0;
    for (int first = 0; first < sizes.length; first++) {
      // The data files between first and next lie wholly within the window, and leave it a sample.
      while (next < places && whole + sizes[next % sizes.length] < window - 1) {
        whole += sizes[next % sizes.length];
        next++;
      }
      most = Math.max(most, Math.min(next, places - 1) - first + 1);
      if (next > first + 1) {
        whole -= sizes[(first + 1) % sizes.length];
      } else {
        next++;
      }
    }
    return window == 1 ? 1 : most;
  }

  /// As [#most], with the smallest data files between the first one and the last.
  private long mostInAnyOrder(long window) {
    long[] ascending = LongStream.of(sizes).sorted().toArray();
    int whole = 0;
    long left = window - 2;
    while (whole < ascending.length && ascending[whole] <= left) {
      left -= ascending[whole];
      whole++;
    }
    return Math.min(whole + 2, wraps() ? sizes.length + 1 : sizes.length);
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
    // Each end of a data file cuts one block of the epoch in two.
    long filesOfBlock = most(Math.min(blockSamples, total), true);
    return Math.min(blocks * filesOfBlock, blocks + sizes.length);
  }

  private long runsInterleaved(int samples) {
    // Turns are as long as they can be, but the window's first and last one, and the last one of
    // each data file.
    long last = Math.min(sizes.length, samples - 2);
    return 2 + last + (samples - 2 - last) / options.interleaveBlock();
  }
}
