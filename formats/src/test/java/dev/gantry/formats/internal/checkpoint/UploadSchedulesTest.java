// SPDX-License-Identifier: Apache-2.0
package dev.gantry.formats.internal.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.testing.schedules.Schedules;
import java.io.IOException;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Explores the schedules of an upload. The tests take long, because each schedule writes files
/// and waits for them.
@Tag("beside")
class UploadSchedulesTest {
  @Test
  void aCopyWithAManifestIsWholeHoweverTwoSaversMeet() throws IOException, InterruptedException {
    assertThat(Schedules.requireGood(UploadScenario.class)).contains("UploadScenario: ");
  }
}
