// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

import dev.gantry.core.MisuseException;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.random.RandomGenerator;

/// Draws a token from those that a [Sampling] keeps, by their probabilities. A vocabulary may have
/// 128,000 tokens, so they are not sorted; each step is one pass over an array. Not thread-safe.
final class TokenSampler {
  private static final int BLOCK = 1024;

  private final Sampling how;
  private final float[] weights;
  private final int[] ids;
  private final double[] sums;

  /// How many tokens are kept: they are the first elements of `ids` and `weights`.
  private int count;

  TokenSampler(Sampling how, int vocabulary) {
    this.how = how;
    weights = new float[vocabulary];
    ids = new int[vocabulary];
    sums = new double[(vocabulary + BLOCK - 1) / BLOCK];
  }

  /// @param shares the probabilities: the next `vocabulary` values of this buffer are read
  /// @throws MisuseException if a value is not a number
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
    // A token belongs to the top-p tokens if the likelier tokens do not reach that probability
    // together. A token is drawn; if it does not belong to them, another is drawn from the
    // likelier tokens. Each draw preserves the ratios among the tokens that belong.
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

  /// Whether a token is kept, by the sum of the likelier tokens' weights. The best token is always
  /// kept.
  private static boolean isWithin(double above, double share) {
    return above == 0 || above < share;
  }

  private boolean isWhole() {
    return count == weights.length;
  }

  private int id(int place) {
    return isWhole() ? place : ids[place];
  }

  /// Keeps the tokens whose weight is above `bound`, in their order.
  ///
  /// @param equal whether tokens whose weight equals `bound` are kept, too
  private void keep(float bound, boolean equal) {
    int least = bits(bound) + (equal ? 0 : 1);
    boolean whole = isWhole();
    int kept = 0;
    for (int i = 0; i < count; i++) {
      // This is written without a branch, which a core would often mispredict.
      float weight = weights[i];
      weights[kept] = weight;
      ids[kept] = whole ? i : ids[i];
      kept += 1 - ((bits(weight) - least) >>> 31);
    }
    count = kept;
  }

  /// Keeps the `most` highest weights, and those equal to the last of them. The highest values of
  /// blocks give a lower bound of them, so that only few values have to be sorted.
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

  /// Returns the `place`th highest of the first `count` values.
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

  /// Returns the index of the token at which the cumulative weight exceeds `point`. If it never
  /// does, because of rounding, returns the last token with a weight.
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

  /// Returns the sum of the weights above that of `bits`. It adds four independent partial sums,
  /// which a core computes in parallel.
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

  /// Returns the weight if it is above that of `bits`, else 0, without a branch.
  private static float ifAbove(float weight, int bits) {
    int own = bits(weight);
    return Float.intBitsToFloat(own & ((bits - own) >> 31));
  }

  /// Returns the bits of a number that is not negative. The order of the bits as integers is the
  /// order of the numbers.
  private static int bits(float weight) {
    return Float.floatToRawIntBits(weight);
  }
}
