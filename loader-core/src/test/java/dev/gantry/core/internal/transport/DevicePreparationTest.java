// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import static org.assertj.core.api.Assertions.assertThat;

import dev.gantry.core.internal.threads.Preparations;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/// A preparation that finds no heap; a load works without it.
class DevicePreparationTest {
  @Test
  void theHeapsEndIsNoErrorOfTheProgram() {
    List<Throwable> uncaught = new CopyOnWriteArrayList<>();
    Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
    Thread.setDefaultUncaughtExceptionHandler((_, failure) -> uncaught.add(failure));
    try {
      DevicePreparation.begin(() -> {
        throw new OutOfMemoryError("made up");
      });
      Preparations.await();
    } finally {
      Thread.setDefaultUncaughtExceptionHandler(before);
    }
    assertThat(uncaught).isEmpty();
  }
}
