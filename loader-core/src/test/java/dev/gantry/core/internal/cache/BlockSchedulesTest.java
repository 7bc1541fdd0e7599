// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Schedules;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class BlockSchedulesTest {
  @Test
  void aBlockIsFetchedOnceInAnySchedule() throws IOException, InterruptedException {
    assertThat(Schedules.requireGood(BlockScenario.class)).contains("BlockScenario: ");
  }
}
