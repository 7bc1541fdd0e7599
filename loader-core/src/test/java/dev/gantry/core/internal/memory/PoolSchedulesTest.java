// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Schedules;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class PoolSchedulesTest {
  @Test
  void aThingIsTakenOrFreedOnceInAnySchedule() throws IOException, InterruptedException {
    assertThat(Schedules.requireGood(PoolScenario.class)).contains("PoolScenario: ");
  }
}
