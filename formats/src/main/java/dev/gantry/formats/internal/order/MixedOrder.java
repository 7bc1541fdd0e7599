// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.order;

import dev.gantry.core.MisuseException;
import java.util.List;
import java.util.OptionalInt;

/// Says which of several datasets gives each batch of an epoch, so that each gives its share: a pure function of
/// weights, seed and epoch. Immutable, thread-safe.
///
/// Each dataset divides time into equal spans, shorter ones for a larger weight, and its k-th
/// batch is due at a random time within the k-th span. Batches are given in the order of their due
/// times. Thus the order looks random, but at any time each dataset has given its share with an
/// error of at most one batch; with independent draws, the error would grow without bound. The
/// number of batches that each dataset has given before the n-th batch is found by bisection, so a
/// resumed training needs no stored counts.
public final class MixedOrder {
  /// The largest allowed ratio of two weights.
  public static final double MAX_RATIO = 1 << 16;

  /// Stands for a number of batches that is not known.
  public static final long UNKNOWN = Long.MAX_VALUE;

  /// The length of the shortest possible span. Spans are whole numbers, so that the computation is exact.
  private static final long UNIT = 1L << 20;

  private static final long MAX_TIME = 1L << 62;

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

  /// @param weights one positive weight for each dataset, of any scale
  /// @param lengths how many batches each dataset has in the epoch, or [#UNKNOWN]
  /// @param untilAll whether the epoch lasts until all datasets have ended, with ended ones passed over;
  ///     else it ends when the next batch is due from a dataset that has ended
  /// @throws MisuseException if there is no dataset, a weight is not a positive number, one is more
  ///     than [#MAX_RATIO] times another, or a dataset of small weight has very many batches: 2^42
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
      if (!(weight > 0) || !Double.isFinite(largest) || largest / weight > MAX_RATIO) {
        throw new MisuseException(
            "weights must be positive, and at most 2^16 times each other: " + weights);
      }
    }
    // Weights are divided by the largest one first, since their plain sum may not be finite.
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

  /// Returns this order for a dataset that turned out to have `length` batches. All batches before the
  /// dataset's end stay the same.
  public MixedOrder withLength(int dataset, long length) {
    checkLength(length, spans[dataset]);
    long[] known = lengths.clone();
    known[dataset] = length;
    return new MixedOrder(spans, keys, known, untilAll);
  }

  /// Returns the dataset that gives the next batch, or empty at the epoch's end.
  ///
  /// @param given how many batches each dataset has given in this epoch
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

  /// Requires that a dataset's last batch is due before [#MAX_TIME].
  private static void checkLength(long length, long span) {
    if (length != UNKNOWN && length >= MAX_TIME / span) {
      throw new MisuseException("too many batches for so small a weight: " + length);
    }
  }
}
