// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.process;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;

/// Lets a command clean up when its JVM is told to end, for example by Ctrl-C or SIGTERM. The
/// command's thread is interrupted and fails with its usual clean-up, and the JVM waits for it.
///
/// The library has no such hook, because a program's own hooks may need it to save a checkpoint at
/// that moment.
public final class Termination {
  private static final long MAX_SECONDS = 20;

  private static volatile boolean begun;

  private Termination() {}

  /// Whether the JVM is ending while a command runs.
  public static boolean hasBegun() {
    return begun;
  }

  /// Runs a command on this thread.
  ///
  /// @return its exit code
  public static int guard(IntSupplier command) {
    Thread caller = Thread.currentThread();
    CountDownLatch done = new CountDownLatch(1);
    Thread hook = new Thread(() -> end(caller, done), "gantry-end");
    Runtime.getRuntime().addShutdownHook(hook);
    try {
      return command.getAsInt();
    } finally {
      done.countDown();
      removeHook(hook);
    }
  }

  /// Removes a shutdown hook. This has no effect once the JVM is ending.
  ///
  /// @return whether the hook was removed, and will not run
  public static boolean removeHook(Thread hook) {
    try {
      return Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException _) {
      return false;
    }
  }

  private static void end(Thread caller, CountDownLatch done) {
    begun = true;
    caller.interrupt();
    try {
      // The wait is limited, because native calls ignore interrupts. Files that are left then are
      // removed by the next run.
      boolean _ = done.await(MAX_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }
}
