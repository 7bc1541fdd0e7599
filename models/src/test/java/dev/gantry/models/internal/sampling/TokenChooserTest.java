// SPDX-License-Identifier: Apache-2.0
package dev.gantry.models.internal.sampling;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDManager;
import ai.djl.ndarray.types.Shape;
import dev.gantry.core.MisuseException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.random.RandomGenerator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class TokenChooserTest {
  private static final int DRAWS = 20_000;

  /// The reference of transformers: scores, ids seen before, and then lines of settings and the
  /// probabilities that they give.
  private static List<String> lines() throws IOException {
    return Files.readAllLines(Path.of("src/test/resources/sampling.txt"));
  }

  static Stream<String> cases() throws IOException {
    return lines().stream().skip(2);
  }

  private static double[] numbers(String line) {
    return Stream.of(line.strip().split(" ")).mapToDouble(Double::parseDouble).toArray();
  }

  @ParameterizedTest
  @MethodSource("cases")
  void tokensComeAsOftenAsInTheReference(String line) throws IOException {
    double[] how = numbers(line.substring(0, line.indexOf('|')));
    double[] expected = numbers(line.substring(line.indexOf('|') + 1));
    Sampling sampling = new Sampling(how[0], how[1], (int) how[2], how[3], how[4]);
    List<RandomGenerator> randoms = new ArrayList<>();
    SplittableRandom seeds = new SplittableRandom(11);
    for (int i = 0; i < DRAWS; i++) {
      randoms.add(seeds.split());
    }
    TokenChooser chooser = new TokenChooser(sampling, randoms);
    long[] seen = Arrays.stream(numbers(lines().get(1))).mapToLong(id -> (long) id).toArray();
    for (int i = 0; i < DRAWS; i++) {
      chooser.saw(i, seen);
    }
    try (NDManager manager = NDManager.newBaseManager()) {
      double[] scores = numbers(lines().getFirst());
      float[] floats = new float[scores.length];
      for (int i = 0; i < floats.length; i++) {
        floats[i] = (float) scores[i];
      }
      NDArray all = manager.create(floats).repeat(0, DRAWS).reshape(floats.length, DRAWS);

      double[] drawn = new double[scores.length];
      for (long token : chooser.next(all.transpose())) {
        drawn[(int) token] += 1.0 / DRAWS;
      }

      for (int id = 0; id < drawn.length; id++) {
        double share = expected[id];
        if (share == 0) {
          assertThat(drawn[id]).as("the share of %s, which is not kept", id).isZero();
        } else {
          // Five deviations of the number of draws.
          double deviation = Math.sqrt(share * (1 - share) / DRAWS);
          assertThat(drawn[id]).isCloseTo(share, within(5 * deviation + 1.0 / DRAWS));
        }
      }
    }
  }

  private static long[] next(Sampling how, float... scores) {
    TokenChooser chooser = new TokenChooser(how, List.of(new SplittableRandom(1)));
    chooser.saw(0, 1, 2);
    try (NDManager manager = NDManager.newBaseManager()) {
      return chooser.next(manager.create(scores, new Shape(1, scores.length)));
    }
  }

  @Test
  void theBestTokenIsChosenAfterThePenalty() {
    Sampling greedy = new Sampling(2, 0, 0, 1, 0);
    assertThat(next(greedy, 1, 1.9f, -3, -4)).containsExactly(0);
    assertThat(next(greedy, -5, -2, -3, -3.5f)).containsExactly(3);
    assertThat(next(greedy, 1, 2.1f, -3, -4)).containsExactly(1);
  }

  @Test
  void scoresThatAreNoNumbersAreRefused() {
    for (int topK : new int[] {0, 1}) {
      assertThatThrownBy(() -> next(new Sampling(1, 1, topK, 1, 0), 1, Float.NaN, 3, 4))
          .isInstanceOf(MisuseException.class)
          .hasMessageContaining("the scores of the next token must be numbers");
    }
  }
}
