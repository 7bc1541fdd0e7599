// SPDX-License-Identifier: Apache-2.0
package dev.gantry.cli.internal.process;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;

/// Has a command undo what it has begun when its JVM is told to end, as by Ctrl-C or SIGTERM: the command's
/// thread is interrupted, fails as it would by itself, and the JVM waits for that.
///
/// The library has no such hook: a program's own hooks may save a checkpoint at that moment.
public final class Termination {
  private static final long MAX_SECONDS = 20;

  private static volatile boolean begun;

  private Termination() {}

  /// Whether the JVM ends while a command runs.
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

  /// Removes a shutdown hook. Has no effect once the JVM is ending.
  ///
  /// @return whether the hook will not run
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
      // The wait has a limit, since native calls do not heed interrupts. The next run removes files
      // that are
      // left then.
      boolean _ = done.await(MAX_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
    }
  }
}
