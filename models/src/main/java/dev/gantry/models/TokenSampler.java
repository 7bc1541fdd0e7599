// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import java.util.Arrays;
import java.util.random.RandomGenerator;

/// Draws a token by its share of `exp(score / temperature)` among the `topK` highest scores; of equal
/// ones the first count. A vocabulary may have 128,000 tokens, so it is neither sorted nor boxed.
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

  /// The lowest of the `topK` highest scores, which are kept as a heap that has the lowest on top.
  private float lowestOfHighest(float[] scores) {
    float[] heap = Arrays.copyOf(scores, topK);
    for (int i = topK / 2 - 1; i >= 0; i--) {
      sink(heap, i);
    }
    for (int i = topK; i < scores.length; i++) {
      if (scores[i] > heap[0]) {
        heap[0] = scores[i];
        sink(heap, 0);
      }
    }
    return heap[0];
  }

  private static void sink(float[] heap, int from) {
    float sinking = heap[from];
    int place = from;
    for (int child = 2 * place + 1; child < heap.length; child = 2 * place + 1) {
      if (child + 1 < heap.length && heap[child + 1] < heap[child]) {
        child++;
      }
      if (heap[child] >= sinking) {
        break;
      }
      heap[place] = heap[child];
      place = child;
    }
    heap[place] = sinking;
  }
}
