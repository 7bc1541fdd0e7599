// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.util.PriorityQueue;
import java.util.random.RandomGenerator;

/// Draws a token by its share of `exp(score / temperature)` among the `topK` highest scores; of equal
/// ones the first count. A vocabulary may have 128,000 tokens, so it is not sorted.
///
/// @param temperature more than 0
/// @param topK 0 for all tokens
record TokenSampler(double temperature, int topK) {
  /// @param scores become the shares; NaN counts as a token that is never drawn
  int draw(float[] scores, RandomGenerator random) {
    int best = 0;
    for (int i = 0; i < scores.length; i++) {
      scores[i] = Float.isNaN(scores[i]) ? Float.NEGATIVE_INFINITY : scores[i];
      best = scores[i] > scores[best] ? i : best;
    }
    double sum = makeShares(scores, scores[best]);
    double point = random.nextDouble() * sum;
    for (int i = 0; i < scores.length; i++) {
      point -= scores[i];
      if (point < 0) {
        return i;
      }
    }
    return best;
  }

  /// @return the sum of the shares
  private double makeShares(float[] scores, float highest) {
    boolean some = topK > 0 && topK < scores.length;
    float lowest = some ? lowestOfHighest(scores) : Float.NEGATIVE_INFINITY;
    int equal = 0;
    if (some) {
      equal = topK;
      for (float score : scores) {
        equal -= score > lowest ? 1 : 0;
      }
    }
    double sum = 0;
    for (int i = 0; i < scores.length; i++) {
      boolean among = scores[i] > lowest || (scores[i] == lowest && equal-- > 0);
      scores[i] = among ? (float) Math.exp((scores[i] - highest) / temperature) : 0;
      sum += scores[i];
    }
    return sum;
  }

  /// The lowest of the `topK` highest scores. Only scores that are among the highest so far are boxed.
  private float lowestOfHighest(float[] scores) {
    PriorityQueue<Float> highest = new PriorityQueue<>();
    for (float score : scores) {
      if (highest.size() < topK) {
        highest.add(score);
      } else if (score > highest.element()) {
        highest.remove();
        highest.add(score);
      }
    }
    return highest.element();
  }
}
