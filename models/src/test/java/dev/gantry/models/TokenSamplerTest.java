// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TokenSamplerTest {
  private static final int VOCABULARY = 128_256;

  /// Half of the scores occur several times.
  private static float[] scores(int count, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    float[] scores = new float[count];
    for (int i = 0; i < count; i++) {
      double score = random.nextDouble(-4, 4);
      scores[i] = (float) (i % 2 == 0 ? score : Math.rint(score));
    }
    return scores;
  }

  @ParameterizedTest
  @CsvSource({
    "40, 0, 1",
    "40, 5, 1",
    "40, 17, 0.5",
    "40, 39, 2",
    "40, 40, 2",
    "40, 90, 2",
    "1, 3, 1"
  })
  void tokensComeByTheirSharesOfTheHighest(int count, int topK, double temperature) {
    float[] scores = scores(count, topK);
    List<Integer> among =
        IntStream.range(0, count)
            .boxed()
            .sorted(Comparator.comparingDouble(id -> -scores[id]))
            .limit(topK == 0 ? count : topK)
            .toList();
    double[] shares = new double[count];
    among.forEach(id -> shares[id] = Math.exp(scores[id] / temperature));
    double sum = IntStream.range(0, count).mapToDouble(id -> shares[id]).sum();

    TokenSampler sampler = new TokenSampler(temperature, topK);
    SplittableRandom random = new SplittableRandom(7);
    double[] drawn = new double[count];
    int draws = 20_000;
    for (int i = 0; i < draws; i++) {
      drawn[sampler.draw(scores.clone(), random)] += 1.0 / draws;
    }
    for (int id = 0; id < count; id++) {
      // Four times the deviation of the number of draws.
      assertThat(drawn[id]).isCloseTo(shares[id] / sum, within(0.015));
      assertThat(drawn[id]).isLessThanOrEqualTo(among.contains(id) ? 1 : 0);
    }
  }

  @Test
  void scoresThatAreNoNumbersAreNeverDrawn() {
    TokenSampler sampler = new TokenSampler(1, 0);
    SplittableRandom random = new SplittableRandom(1);
    for (int i = 0; i < 100; i++) {
      assertThat(sampler.draw(new float[] {Float.NaN, 1, Float.NEGATIVE_INFINITY, 1}, random))
          .isIn(1, 3);
    }
    assertThat(sampler.draw(new float[] {Float.NaN, Float.NaN}, random)).isZero();
    assertThat(sampler.draw(new float[] {1, Float.POSITIVE_INFINITY}, random)).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource({"0", "50"})
  void aDrawMakesNoObjectForEachToken(int topK) {
    TokenSampler sampler = new TokenSampler(1, topK);
    SplittableRandom random = new SplittableRandom(1);
    float[] scores = scores(VOCABULARY, 1);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    sampler.draw(scores, random);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(VOCABULARY);
  }
}
