// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import static org.assertj.core.api.Assertions.assertThatCode;

import org.junit.jupiter.api.Test;

class PreparationsTest {
  @Test
  void thatNoThreadCanBeStartedIsNoErrorOfTheProgram() {
    Thread refused =
        new Thread() {
          @Override
          public void start() {
            throw new OutOfMemoryError("unable to create native thread");
          }
        };
    assertThatCode(() -> Preparations.start(refused)).doesNotThrowAnyException();
    Preparations.await();
  }
}
