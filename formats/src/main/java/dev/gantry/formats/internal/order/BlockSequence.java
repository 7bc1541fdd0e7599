// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

/// Gives blocks of consecutive samples in random order. The blocks are counted from a random
/// sample on and wrap around from the end of the files to their beginning, so that the last block,
/// which may be shorter, has other samples in each epoch.
final class BlockSequence implements SampleSequence {
  private static final long MAX_AT_ONCE = 1024;

  private final FileSequence files;
  private final int blockSamples;
  private final long fullBlocks;
  private final long offset;
  private final Permutation order;

  BlockSequence(FileSequence files, int blockSamples, long seed, long epoch) {
    this.files = files;
    this.blockSamples = blockSamples;
    this.fullBlocks = files.size() / blockSamples;
    this.offset = Mix.below(files.size(), Mix.key(seed, epoch, 1), 0);
    this.order = Permutation.of(fullBlocks, Mix.key(seed, epoch, 2));
  }

  @Override
  public long size() {
    return files.size();
  }

  @Override
  public void collect(long position, long count, RunCollector runs) {
    long at = position;
    long end = position + count;
    while (at < end) {
      long first = at / blockSamples;
      long last = Math.min(first + MAX_AT_ONCE - 1, (end - 1) / blockSamples);
      long[] froms = new long[(int) (Math.min(last, fullBlocks - 1) - first + 1)];
      order.fill(first, froms);
      for (long block = first; block <= last; block++) {
        long within = at - block * blockSamples;
        long samples = Math.min(end - at, blockSamples - within);
        long from = block < fullBlocks ? froms[(int) (block - first)] : fullBlocks;
        collectWrapping(from * blockSamples + within, samples, runs);
        at += samples;
      }
    }
  }

  /// @param from the first sample, counted from the random offset on
  private void collectWrapping(long from, long samples, RunCollector runs) {
    long start = from < size() - offset ? from + offset : from - (size() - offset);
    long untilEnd = Math.min(samples, size() - start);
    files.collect(start, untilEnd, runs);
    if (untilEnd < samples) {
      files.collect(0, samples - untilEnd, runs);
    }
  }
}
