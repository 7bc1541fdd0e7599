// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.result;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import org.junit.jupiter.api.Test;

/// Medians and what lies around them.
class SpreadTest {
  @Test
  void oddNumbersHaveAMiddleOne() {
    assertThat(Spread.of(List.of(3.0, 1.0, 9.0))).isEqualTo(new Spread(1, 3, 9));
  }

  @Test
  void ofEvenNumbersTheMedianLiesBetween() {
    assertThat(Spread.of(List.of(4.0, 1.0, 2.0, 9.0))).isEqualTo(new Spread(1, 3, 9));
  }

  @Test
  void oneNumberIsAllThree() {
    assertThat(Spread.of(List.of(7.5))).isEqualTo(new Spread(7.5, 7.5, 7.5));
  }

  @Test
  void noNumbersHaveNone() {
    assertThatThrownBy(() -> Spread.of(List.of())).isInstanceOf(IllegalArgumentException.class);
  }
}
