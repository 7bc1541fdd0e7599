// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/// Who may take how long, by a clock that stands still.
class BudgetTest {
  private long now = 1000;

  private Budget budget(double seconds, double weights) {
    return new Budget(seconds, weights, () -> now);
  }

  @Test
  void blocksShareByWeight() {
    Budget budget = budget(10, 4);

    assertThat(budget.deadline(1) - now).isEqualTo((long) 2.5e9);
    now += (long) 2.5e9;
    assertThat(budget.deadline(3) - now).isEqualTo((long) 7.5e9);
  }

  @Test
  void whatOneLeavesGoesToTheOthers() {
    Budget budget = budget(10, 2);

    assertThat(budget.deadline(1) - now).isEqualTo((long) 5e9);
    now += (long) 1e9;
    assertThat(budget.deadline(1) - now).isEqualTo((long) 9e9);
  }

  @Test
  void afterTheEndNothingIsLeft() {
    Budget budget = budget(10, 2);

    now += (long) 11e9;
    assertThat(budget.deadline(1)).isEqualTo(now);
    assertThat(budget.deadline(1)).isEqualTo(now);
  }

  @Test
  void aBudgetThatWasOverdrawnBeforeItBeganHasNothing() {
    assertThat(budget(-3, 1).deadline(1)).isEqualTo(now);
  }
}
