// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.OptionalInt;

/// Says which of several datasets gives each batch of an epoch, so that each gives its share: a pure function of
/// weights, seed and epoch. Immutable, thread-safe.
///
/// Each dataset's batches have due times: its k-th one falls at random into the k-th of equal spans
/// of time, which are the shorter the larger its weight is. Batches are given in the order of their
/// times. So they look drawn at random, yet before any time a dataset has given its share of it but
/// for less than one batch; with independent draws the error would grow without end. And how many
/// batches each dataset has given before the n-th one, which is what resuming needs, is found by
/// bisection: no counts have to be kept.
public final class MixedOrder {
  /// The most that a weight may be of another one.
  public static final double MOST_RATIO = 1 << 16;

  /// For a dataset whose number of batches is not known.
  public static final long UNKNOWN = Long.MAX_VALUE;

  /// A span of a dataset that has all the weight. Spans are whole numbers: all is exact.
  private static final long UNIT = 1L << 20;

  private static final long MOST_TIME = 1L << 62;

  private final long[] spans;
  private final long[] keys;
  private final long[] lengths;
  private final boolean untilAll;

  private MixedOrder(long[] spans, long[] keys, long[] lengths, boolean untilAll) {
    this.spans = spans;
    this.keys = keys;
    this.lengths = lengths;
    this.untilAll = untilAll;
  }

  /// @param weights one a dataset, of any unit, each positive
  /// @param lengths how many batches each dataset has in the epoch, or [#UNKNOWN]
  /// @param untilAll whether the epoch is over when no dataset has any more, those that have ended
  ///     being passed over; else when the next batch is due from a dataset that has no more
  /// @throws MisuseException if there is no dataset, a weight is not a positive number, one is more
  ///     than [#MOST_RATIO] times another, or a dataset of small weight has very many batches: 2^42
  ///     divided by the number of datasets and by how many times its weight the largest one is
  public static MixedOrder of(
      List<Double> weights, List<Long> lengths, boolean untilAll, long seed, long epoch) {
    if (weights.isEmpty() || weights.size() != lengths.size()) {
      throw new MisuseException(weights.size() + " weights for " + lengths.size() + " datasets");
    }
    if (lengths.stream().anyMatch(length -> length < 0)) {
      throw new MisuseException("negative number of batches: " + lengths);
    }
    double largest = weights.stream().mapToDouble(Double::doubleValue).max().orElseThrow();
    for (double weight : weights) {
      if (!(weight > 0) || !Double.isFinite(largest) || largest / weight > MOST_RATIO) {
        throw new MisuseException(
            "weights must be positive, and at most 2^16 times each other: " + weights);
      }
    }
    // Against the largest, since a sum may not be finite.
    double sum = weights.stream().mapToDouble(weight -> weight / largest).sum();
    long[] spans =
        weights.stream()
            .mapToLong(weight -> StrictMath.round(UNIT * (sum / (weight / largest))))
            .toArray();
    long[] keys = new long[spans.length];
    for (int dataset = 0; dataset < keys.length; dataset++) {
      checkLength(lengths.get(dataset), spans[dataset]);
      keys[dataset] = Mix.at(Mix.key(seed, epoch, 3), dataset);
    }
    return new MixedOrder(
        spans, keys, lengths.stream().mapToLong(Long::longValue).toArray(), untilAll);
  }

  /// This order, now that a dataset has turned out to have `length` batches. What came before the
  /// dataset ended stays as it was.
  public MixedOrder withLength(int dataset, long length) {
    checkLength(length, spans[dataset]);
    long[] known = lengths.clone();
    known[dataset] = length;
    return new MixedOrder(spans, keys, known, untilAll);
  }

  /// The dataset that gives the next batch, or empty at the end.
  ///
  /// @param given how many batches each has given in this epoch
  public OptionalInt next(long[] given) {
    int next = -1;
    long soonest = Long.MAX_VALUE;
    for (int dataset = 0; dataset < spans.length; dataset++) {
      boolean has = given[dataset] < lengths[dataset];
      if (has || !untilAll) {
        long due = due(dataset, given[dataset]);
        if (next < 0 || due < soonest) {
          next = dataset;
          soonest = due;
        }
      }
    }
    return next < 0 || given[next] >= lengths[next] ? OptionalInt.empty() : OptionalInt.of(next);
  }

  private long due(int dataset, long batch) {
    long start = Math.multiplyExact(batch, spans[dataset]);
    return Math.addExact(start, Mix.below(spans[dataset], keys[dataset], batch));
  }

  /// What is due last must still be due before [#MOST_TIME].
  private static void checkLength(long length, long span) {
    if (length != UNKNOWN && length >= MOST_TIME / span) {
      throw new MisuseException("too many batches for so small a weight: " + length);
    }
  }
}
