// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.benchmarks.result.Spread;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Comparisons of contenders whose times are made up.
class ComparisonTest {
  private final List<String> closed = new ArrayList<>();

  private Contender contender(String name, double seconds) {
    return new Contender() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public double run() {
        return seconds;
      }

      @Override
      public void close() {
        closed.add(name);
      }
    };
  }

  private Comparison comparison(Contender... contenders) {
    return new Comparison("made up", 2_000_000_000).samples(10).addAll(List.of(contenders));
  }

  @Test
  void ratesAreOfTheBytesOfARun() throws Exception {
    assertThat(comparison(contender("a", 1), contender("b", 4)).rates(3))
        .containsExactly(new Spread(2, 2, 2), new Spread(0.5, 0.5, 0.5));
    assertThat(closed).containsExactly("a", "b");
  }

  @Test
  void conditionsAreMadeBeforeEachRunAndTheWarmUp() throws Exception {
    int[] made = {0};
    comparison(contender("a", 1), contender("b", 1)).before(() -> made[0]++).print(2);
    assertThat(made[0]).isEqualTo(6);
  }

  @Test
  void aFailureEndsItWithItsReason() {
    Contender failing =
        Contender.of(
            "b",
            () -> {
              throw new IOException("no disk");
            });
    assertThatThrownBy(() -> comparison(contender("a", 1), failing).print(1))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("IOException: no disk");
    assertThat(closed).containsExactly("a");
  }

  @Test
  void whoDoesLessThanItShouldIsRefused() {
    assertThatThrownBy(() -> comparison(Contender.of("a", 7, () -> 6)).print(1))
        .isInstanceOf(WrongBytesException.class)
        .hasMessage("a: 6 done, not 7");
  }
}
