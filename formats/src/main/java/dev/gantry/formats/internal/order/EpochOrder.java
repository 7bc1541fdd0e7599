// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import dev.gantry.formats.LastBatch;
import dev.gantry.formats.Shuffle;
import dev.gantry.formats.spi.SampleRun;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;

/// Says which samples one rank gets in one epoch: a pure function of the data files' sizes, the options and
/// the epoch's number. Immutable, thread-safe.
///
/// The epoch's samples are dealt in rounds: in each round, every rank takes one batch, in the
/// order of the ranks. Thus all ranks' batches, in this order, are the batches that a single rank
/// would get. [LastBatch] decides what happens to the samples that are left after the full rounds.
public final class EpochOrder {
  /// The most samples that a dataset may have.
  public static final long MAX_SAMPLES = 1L << 62;

  private final SampleSequence samples;
  private final OrderOptions options;
  private final long rounds;
  private final long rest;

  private EpochOrder(SampleSequence samples, OrderOptions options) {
    this.samples = samples;
    this.options = options;
    // The product is below 2^24 · 2^31, so it does not overflow.
    long round = (long) options.batchSize() * options.world();
    this.rounds = samples.size() / round;
    this.rest = samples.size() % round;
  }

  /// Computes an epoch's order. Time and memory depend on the number of data files, not of samples.
  ///
  /// @param fileSamples how many samples each data file has, 0 or more; up to [#MAX_SAMPLES] together
  /// @param epoch the epoch's number, from 0
  public static EpochOrder of(List<Long> fileSamples, OrderOptions options, long epoch) {
    return new EpochOrder(SampleSequence.of(fileSamples, options, epoch), options);
  }

  /// The order in which an epoch reads whole data files, none of them empty; for [Shuffle.Samples], before a buffer
  /// mixes their samples.
  ///
  /// @return the data files' numbers
  /// @throws MisuseException for [Shuffle.Blocks], which mixes data files
  public static int[] files(int files, Shuffle shuffle, long epoch) {
    return switch (shuffle) {
      case Shuffle.None() -> IntStream.range(0, files).toArray();
      case Shuffle.Shards(long seed) -> Permutation.shuffled(files, Mix.key(seed, epoch, 0));
      case Shuffle.Samples(long seed) -> Permutation.shuffled(files, Mix.key(seed, epoch, 0));
      case Shuffle.Blocks _ -> throw new MisuseException("blocks mix shards");
    };
  }

  /// How many batches the epoch has on each rank.
  public long batches() {
    return rest == 0 || options.lastBatch() == LastBatch.DROP ? rounds : rounds + 1;
  }

  /// Returns a batch's samples in order. The time depends on the number of runs, not on the position in the
  /// epoch.
  ///
  /// @return runs as long as possible: none continues the one before it
  /// @throws IndexOutOfBoundsException if the epoch has no such batch
  public List<SampleRun> batch(long index) {
    Objects.checkIndex(index, batches());
    if (index < rounds || options.lastBatch() == LastBatch.PAD) {
      long position = (index * options.world() + options.rank()) * options.batchSize();
      return collect(position, options.batchSize());
    }
    return share();
  }

  /// Whether this rank's last batch has samples that no other rank has. If not, other ranks have taken all
  /// remaining samples, and this batch repeats one.
  public boolean lastHasOwn() {
    return rest == 0 || options.lastBatch() != LastBatch.KEEP || options.rank() < rest;
  }

  /// Returns this rank's share of the remaining samples; the ranks' shares differ by at most one sample.
  private List<SampleRun> share() {
    long start = samples.size() - rest;
    long all = rest / options.world();
    long more = rest % options.world();
    int rank = options.rank();
    long count = all + (rank < more ? 1 : 0);
    return count == 0
        ? collect(rank - more, 1)
        : collect(start + rank * all + Math.min(rank, more), count);
  }

  /// @param position the first sample's position; positions past the end continue at the epoch's
  ///     beginning
  private List<SampleRun> collect(long position, long count) {
    RunCollector runs = new RunCollector(count);
    long at = position % samples.size();
    long left = count;
    while (left > 0) {
      long taken = Math.min(left, samples.size() - at);
      samples.collect(at, taken, runs);
      left -= taken;
      at = 0;
    }
    return runs.runs();
  }
}
