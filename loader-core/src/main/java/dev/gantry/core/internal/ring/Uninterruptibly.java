package dev.gantry.core.internal.ring;

import java.util.concurrent.CountDownLatch;

/// Waits that an interruption does not end; it is told again afterwards.
final class Uninterruptibly {
  private Uninterruptibly() {}

  @FunctionalInterface
  private interface Wait {
    void run() throws InterruptedException;
  }

  static void join(Thread thread) {
    run(thread::join);
  }

  static void await(CountDownLatch latch) {
    run(latch::await);
  }

  private static void run(Wait wait) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          wait.run();
          return;
        } catch (InterruptedException _) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
