// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.output;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import org.junit.jupiter.api.Test;

class ProgressTest {
  @Test
  void aCommandThatIsInterruptedEndsAtItsNextStep() {
    try (Progress progress = Progress.ofSteps("digest", 2)) {
      progress.onProgress(1, 2);
      Thread.currentThread().interrupt();
      assertThatThrownBy(() -> progress.onProgress(2, 2))
          .isInstanceOfSatisfying(
              TransferException.class,
              e -> assertThat(e.failure()).isEqualTo(new Failure.Cancelled()));
    } finally {
      assertThat(Thread.interrupted()).isTrue();
    }
  }
}
