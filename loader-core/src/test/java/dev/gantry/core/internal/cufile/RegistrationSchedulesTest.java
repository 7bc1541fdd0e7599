// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Schedules;
import java.io.IOException;
import org.junit.jupiter.api.Test;

class RegistrationSchedulesTest {
  @Test
  void whatIsInUseIsRegisteredInAnySchedule() throws IOException, InterruptedException {
    assertThat(Schedules.requireGood(RegistrationScenario.class))
        .contains("RegistrationScenario: ");
  }
}
