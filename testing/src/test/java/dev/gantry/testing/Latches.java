// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/// Waits of tests for other threads.
public final class Latches {
  private static final int SECONDS = 60;

  private Latches() {}

  /// Waits where an interrupt is a failure of the test, as is a latch that nobody opens.
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
