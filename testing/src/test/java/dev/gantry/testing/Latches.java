// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/// Waits for other threads, with a time limit.
public final class Latches {
  private static final int SECONDS = 60;
  private static final long POLL_NANOS = 100_000;

  private Latches() {}

  /// Waits for a condition that opens no latch, such as that another thread waits.
  public static void awaitThat(BooleanSupplier happened) {
    long begun = System.nanoTime();
    while (!happened.getAsBoolean()) {
      if (System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(SECONDS)) {
        throw new AssertionError("it did not happen within " + SECONDS + " s");
      }
      LockSupport.parkNanos(POLL_NANOS);
    }
  }

  /// Waits for a latch. The test fails if the wait is interrupted or if no thread opens the latch
  /// in time.
  public static void await(CountDownLatch latch) {
    try {
      if (!latch.await(SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("the latch was not opened within " + SECONDS + " s");
      }
    } catch (InterruptedException e) {
      throw new AssertionError("interrupted while waiting for a latch", e);
    }
  }
}
