// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cufile;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

class BatchBudgetTest {
  @Test
  void severalShareTheRoom() {
    BatchBudget budget = new BatchBudget(10, false);
    assertThat(budget.take(7, () -> true)).isEqualTo(7);
    assertThat(budget.take(7, () -> true)).isEqualTo(3);
    budget.giveBack(4);
    assertThat(budget.take(1, () -> true)).isEqualTo(1);
  }

  @Test
  void oneAtOnceWaitsUntilAllIsGivenBack() throws Exception {
    BatchBudget budget = new BatchBudget(10, true);
    assertThat(budget.take(7, () -> true)).isEqualTo(7);
    CompletableFuture<Integer> next = new CompletableFuture<>();
    Thread waiting = Thread.ofPlatform().start(() -> next.complete(budget.take(20, () -> true)));
    budget.giveBack(6);
    while (waiting.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    assertThat(next).isNotDone();
    budget.giveBack(1);
    assertThat(next.get()).isEqualTo(10);
  }

  @Test
  void whoMayNotContinueGetsNothing() throws Exception {
    BatchBudget budget = new BatchBudget(1, false);
    assertThat(budget.take(1, () -> true)).isEqualTo(1);
    AtomicBoolean goesOn = new AtomicBoolean(true);
    CompletableFuture<Integer> next = new CompletableFuture<>();
    Thread waiting = Thread.ofPlatform().start(() -> next.complete(budget.take(1, goesOn::get)));
    while (waiting.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    goesOn.set(false);
    budget.wake();
    assertThat(next.get()).isZero();
  }

  /// Such code takes locks of its own, whose holders give entries back.
  @Test
  void whoWaitsIsAskedOutsideTheLock() throws Exception {
    BatchBudget budget = new BatchBudget(1, false);
    assertThat(budget.take(1, () -> true)).isEqualTo(1);
    AtomicBoolean locked = new AtomicBoolean();
    CompletableFuture<Integer> next = new CompletableFuture<>();
    Thread waiting =
        Thread.ofPlatform()
            .start(() ->
                next.complete(
                    budget.take(
                        1,
                        () -> {
                          locked.compareAndSet(false, Thread.holdsLock(budget));
                          return true;
                        })));
    while (waiting.getState() != Thread.State.WAITING) {
      Thread.onSpinWait();
    }
    budget.wake();
    budget.giveBack(1);
    assertThat(next.get()).isEqualTo(1);
    assertThat(locked).isFalse();
  }
}
