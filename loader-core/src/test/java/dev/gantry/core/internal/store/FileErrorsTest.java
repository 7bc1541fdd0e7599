// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.channels.ClosedByInterruptException;
import org.junit.jupiter.api.Test;

class FileErrorsTest {
  @Test
  void anInterruptedReadSaysSoAndKeepsItsCause() {
    ClosedByInterruptException cause = new ClosedByInterruptException();
    assertThat(FileErrors.of("read", "/f", cause))
        .hasMessage("read failed: /f, on an interrupted thread: cancelled")
        .hasCause(cause);
  }
}
