// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.MisuseException;
import dev.gantry.testing.Latches;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class UseGateTest {
  private final UseGate gate = new UseGate("model", "prediction");

  @Test
  void whatIsUsedIsFreedOnceAndNotByItsOwnUse() {
    AtomicInteger freed = new AtomicInteger();
    gate.using(() -> {
      assertThatThrownBy(() -> gate.close(freed::incrementAndGet))
          .isInstanceOf(MisuseException.class)
          .hasMessage("this model cannot be closed by a prediction of its own");
      return 0;
    });
    gate.close(freed::incrementAndGet);
    gate.close(freed::incrementAndGet);
    assertThat(freed).hasValue(1);
  }

  @Test
  void aUseThatWaitedForTheCloseIsRefused() {
    CompletableFuture<String> use = new CompletableFuture<>();
    Thread user =
        Thread.ofPlatform()
            .unstarted(() -> {
              try {
                use.complete(gate.using(() -> "freed memory"));
              } catch (MisuseException refused) {
                use.complete(refused.getMessage());
              }
            });
    gate.close(() -> {
      user.start();
      Latches.awaitThat(
          () -> Set.of(Thread.State.WAITING, Thread.State.TERMINATED).contains(user.getState()));
    });
    assertThat(use.join()).isEqualTo("this model is closed");
  }
}
