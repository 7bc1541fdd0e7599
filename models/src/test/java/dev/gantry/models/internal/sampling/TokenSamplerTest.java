// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TokenSamplerTest {
  private static final int VOCABULARY = 128_256;

  /// Half of the shares occur several times.
  private static float[] shares(int count, double spread) {
    SplittableRandom random = new SplittableRandom(count);
    float[] shares = new float[count];
    for (int i = 0; i < count; i++) {
      double score = random.nextGaussian() * spread;
      shares[i] = (float) Math.exp(i % 2 == 0 ? score : Math.rint(score));
    }
    return shares;
  }

  private static double mass(float[] shares, double from) {
    double sum = 0;
    for (float share : shares) {
      sum += share >= from ? share : 0;
    }
    return sum;
  }

  /// The bound at and above which tokens are kept, by a sort.
  private static double bound(float[] shares, Sampling how) {
    float[] sorted = shares.clone();
    Arrays.sort(sorted);
    int last = sorted.length - 1;
    float lowest = how.topK() == 0 ? 0 : sorted[Math.max(0, sorted.length - how.topK())];
    double target = how.topP() * mass(shares, lowest);
    int place = last;
    for (double above = sorted[last]; place > 0 && above < target; above += sorted[place]) {
      place--;
    }
    return Math.max(Math.max(lowest, sorted[place]), sorted[last] * how.minP());
  }

  @ParameterizedTest
  @CsvSource({
    "128256, 50, 1, 0", "128256, 5000, 1, 0", "128256, 100000, 1, 0", "128256, 0, 0.3, 0",
    "128256, 0, 0.95, 0", "128256, 0, 1, 0.2", "128256, 900, 0.5, 0.1", "1, 1, 1, 0",
    "1023, 1023, 0.5, 0", "1025, 3, 0, 0", "4097, 0, 0.999, 0.001"
  })
  void onlyKeptTokensAreDrawn(int count, int topK, double topP, double minP) {
    for (double spread : new double[] {0.5, 3}) {
      float[] shares = shares(count, spread);
      Sampling how = new Sampling(1, 1, topK, topP, minP);
      double bound = bound(shares, how);
      TokenSampler sampler = new TokenSampler(how, count);
      SplittableRandom random = new SplittableRandom(4);
      double kept = mass(shares, bound);
      double mean = 0;
      int draws = 100;
      for (int i = 0; i < draws; i++) {
        int drawn = sampler.draw(FloatBuffer.wrap(shares), random);
        // The bound is of sums in another order.
        assertThat((double) shares[drawn]).isGreaterThanOrEqualTo(bound * 0.9999);
        mean += mass(shares, Math.nextUp(shares[drawn])) / kept / draws;
      }
      // A drawn token stands anywhere in the mass that is kept: in the middle, on average, or
      // before it as far as others are equal to it.
      assertThat(mean).isBetween(0.0, 0.6);
    }
  }

  @Test
  void ofEqualTokensEachIsDrawn() {
    float[] shares = {0, 0.25f, 0.25f, 0, 0.25f, 0.25f, 0, 0};
    TokenSampler sampler = new TokenSampler(new Sampling(1, 1, 2, 0.1, 0.5), shares.length);
    SplittableRandom random = new SplittableRandom(1);
    int[] drawn = new int[shares.length];
    for (int i = 0; i < 400; i++) {
      drawn[sampler.draw(FloatBuffer.wrap(shares), random)]++;
    }
    for (int id = 0; id < shares.length; id++) {
      assertThat(drawn[id] > 50).isEqualTo(shares[id] > 0);
    }
  }

  /// 0.25 is just half of the best token's probability.
  @Test
  void aTokenAtTheLeastProbabilityIsDrawn() {
    float[] shares = {0.5f, 0.25f, 0.125f, 0.125f};
    TokenSampler sampler = new TokenSampler(new Sampling(1, 1, 0, 1, 0.5), shares.length);
    SplittableRandom random = new SplittableRandom(1);
    int[] drawn = new int[shares.length];
    for (int i = 0; i < 100; i++) {
      drawn[sampler.draw(FloatBuffer.wrap(shares), random)]++;
    }
    assertThat(drawn[0]).isBetween(50, 85);
    assertThat(drawn[0] + drawn[1]).isEqualTo(100);
  }

  @ParameterizedTest
  @CsvSource({"0, 1", "50, 1", "0, 0.9"})
  void aDrawMakesNoObjectForEachToken(int topK, double topP) {
    TokenSampler sampler = new TokenSampler(new Sampling(1, 1, topK, topP, 0), VOCABULARY);
    SplittableRandom random = new SplittableRandom(1);
    FloatBuffer shares = FloatBuffer.wrap(shares(VOCABULARY, 2));
    sampler.draw(shares.duplicate(), random);
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    long before = threads.getCurrentThreadAllocatedBytes();
    sampler.draw(shares, random);
    assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(VOCABULARY);
  }

  /// Rounding may leave a draw at the end of all probabilities.
  @Test
  void aTokenWithoutAProbabilityIsNeverDrawn() {
    TokenSampler sampler = new TokenSampler(new Sampling(1, 1, 0, 1, 0), 4);
    RandomGenerator last =
        new RandomGenerator() {
          @Override
          public long nextLong() {
            return -1;
          }

          @Override
          public double nextDouble() {
            return 1;
          }
        };
    assertThat(sampler.draw(FloatBuffer.wrap(new float[] {0, 0.5f, 0.5f, 0}), last)).isEqualTo(2);
  }
}
