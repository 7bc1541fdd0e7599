// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class IdleWatchTest {
  @Test
  void oneErrorDoesNotEndTheWatch() throws InterruptedException {
    AtomicInteger calls = new AtomicInteger();
    CountDownLatch again = new CountDownLatch(1);
    IdleWatch.watch(() -> {
      if (calls.incrementAndGet() == 1) {
        throw new OutOfMemoryError("made up");
      }
      again.countDown();
      return false;
    });
    again.await();
    CountDownLatch another = new CountDownLatch(1);
    IdleWatch.watch(() -> {
      another.countDown();
      return false;
    });
    another.await();
  }
}
