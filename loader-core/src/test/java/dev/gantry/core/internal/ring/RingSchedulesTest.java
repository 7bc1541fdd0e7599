// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.ring;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Schedules;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class RingSchedulesTest {
  @Test
  void batchesComeInOrderAndNobodyWaitsForEverInAnySchedule()
      throws IOException, InterruptedException {
    assertThat(
            Schedules.requireGood(
                RingScenario.class,
                RingScenario.Failing.class,
                RingScenario.Closed.class,
                RingScenario.PlannedAhead.class,
                RingScenario.ClosedAhead.class))
        .contains("RingScenario: ", "RingScenario$Failing: ", "RingScenario$Closed: ")
        .contains("RingScenario$PlannedAhead: ", "RingScenario$ClosedAhead: ");
  }
}
