// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

import dev.gantry.core.MisuseException;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.random.RandomGenerator;

/// Draws a token by its share of those that a [Sampling] keeps. A vocabulary may have 128,000 tokens, so it is not
/// sorted, and each step is one pass over an array. For one thread.
final class TokenSampler {
  private static final int BLOCK = 1024;

  private final Sampling how;
  private final float[] weights;
  private final int[] ids;
  private final double[] sums;

  /// How many tokens are left: `ids` and `weights` begin with them.
  private int count;

  TokenSampler(Sampling how, int vocabulary) {
    this.how = how;
    weights = new float[vocabulary];
    ids = new int[vocabulary];
    sums = new double[(vocabulary + BLOCK - 1) / BLOCK];
  }

  /// @param shares the next `vocabulary` values are read: the softmax of the scores
  /// @throws MisuseException if they are no numbers
  int draw(FloatBuffer shares, RandomGenerator random) {
    count = weights.length;
    shares.get(weights);
    if (how.topK() > 0 && how.topK() < count) {
      keepHighest(how.topK());
    }
    double total = sum();
    if (!(total > 0 && total < Double.POSITIVE_INFINITY)) {
      throw new MisuseException(
          "the scores of the next token must be numbers (their softmax has the sum %s)"
              .formatted(total));
    }
    float floor = how.minP() == 0 ? 0 : (float) (best(0, count) * how.minP());
    double mass = total;
    // A token belongs to the likeliest ones of a share if those that are likelier do not have it
    // already. So one is
    // drawn, and drawn again among the likelier ones if it does not: each draw is fair to those
    // that belong.
    while (true) {
      int drawn = place(random.nextDouble() * mass);
      float weight = weights[drawn];
      if (weight < floor) {
        keep(floor, true);
      } else if (how.topP() == 1 || isWithin(mass(0, count, bits(weight)), how.topP() * total)) {
        return id(drawn);
      } else {
        keep(weight, false);
      }
      mass = sum();
    }
  }

  /// The best token belongs to the likeliest ones of any share.
  private static boolean isWithin(double above, double share) {
    return above == 0 || above < share;
  }

  private boolean isWhole() {
    return count == weights.length;
  }

  private int id(int place) {
    return isWhole() ? place : ids[place];
  }

  /// Keeps the tokens above `bound`, in their order.
  ///
  /// @param equal whether those at it are kept, too
  private void keep(float bound, boolean equal) {
    int least = bits(bound) + (equal ? 0 : 1);
    boolean whole = isWhole();
    int kept = 0;
    for (int i = 0; i < count; i++) {
      // Written without a branch, which a core would often foretell wrongly.
      float weight = weights[i];
      weights[kept] = weight;
      ids[kept] = whole ? i : ids[i];
      kept += 1 - ((bits(weight) - least) >>> 31);
    }
    count = kept;
  }

  /// Keeps the `most` highest, and those equal to the last of them. So many blocks' highest values are as high as the
  /// highest `most` values at least, so that only few values are sorted.
  private void keepHighest(int most) {
    int size = Math.max(1, count / (4 * most));
    float[] maxima = new float[(count + size - 1) / size];
    for (int block = 0; block < maxima.length; block++) {
      maxima[block] = best(block * size, Math.min(count, (block + 1) * size));
    }
    float bound = last(maxima, maxima.length, most);
    int kept = 0;
    for (int block = 0; block < maxima.length; block++) {
      int end = maxima[block] >= bound ? Math.min(count, (block + 1) * size) : 0;
      for (int i = block * size; i < end; i++) {
        if (weights[i] >= bound) {
          weights[kept] = weights[i];
          ids[kept++] = i;
        }
      }
    }
    count = kept;
    if (size > 1 && kept > most) {
      keep(last(weights, count, most), true);
    }
  }

  /// The `place`th highest of the first values.
  private static float last(float[] values, int count, int place) {
    float[] sorted = Arrays.copyOf(values, count);
    Arrays.sort(sorted);
    return sorted[count - place];
  }

  private float best(int from, int to) {
    float best = 0;
    for (int i = from; i < to; i++) {
      best = Math.max(best, weights[i]);
    }
    return best;
  }

  private double sum() {
    double all = 0;
    for (int from = 0; from < count; from += BLOCK) {
      sums[from / BLOCK] = mass(from, Math.min(count, from + BLOCK), -1);
      all += sums[from / BLOCK];
    }
    return all;
  }

  /// The place of the token at which the sum of weights passes `point`, and of the last one that has a weight where
  /// rounding lets none.
  private int place(double point) {
    double left = point;
    int block = 0;
    while ((block + 1) * BLOCK < count && left >= sums[block]) {
      left -= sums[block++];
    }
    int last = 0;
    for (int i = block * BLOCK; i < count; i++) {
      if (weights[i] > 0) {
        left -= weights[i];
        last = i;
        if (left < 0) {
          break;
        }
      }
    }
    return last;
  }

  /// Adds up the weights above that of `bits`, in four parts, which a core adds at once.
  private double mass(int from, int end, int bits) {
    double a = 0;
    double b = 0;
    double c = 0;
    double d = 0;
    int i = from;
    for (; i + 3 < end; i += 4) {
      a += ifAbove(weights[i], bits);
      b += ifAbove(weights[i + 1], bits);
      c += ifAbove(weights[i + 2], bits);
      d += ifAbove(weights[i + 3], bits);
    }
    for (; i < end; i++) {
      a += ifAbove(weights[i], bits);
    }
    return a + b + c + d;
  }

  /// The weight if it is above that of `bits`, else 0, without a branch.
  private static float ifAbove(float weight, int bits) {
    int own = bits(weight);
    return Float.intBitsToFloat(own & ((bits - own) >> 31));
  }

  /// The bits of a number that is not negative: they are in the order of the numbers.
  private static int bits(float weight) {
    return Float.floatToRawIntBits(weight);
  }
}
