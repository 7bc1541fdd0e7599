// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Cleans up in several steps, and does every step even if others fail. Thread-safe.
public final class Cleanup {
  private Cleanup() {}

  /// Runs all actions even if some fail, in whatever way; then throws the first failure, with the others as suppressed
  /// exceptions.
  public static void runAll(List<? extends Runnable> actions) {
    Throwable first = null;
    for (Runnable action : actions) {
      try {
        action.run();
      } catch (Throwable e) {
        // A caller's code may also throw undeclared checked exceptions: the rest is still cleaned
        // up.
        if (first == null) {
          first = e;
        } else if (!first.equals(e)) {
          first.addSuppressed(e);
        }
      }
    }
    rethrow(first, "a cleanup failed");
  }

  /// Throws the failure of another thread or an earlier step; does nothing if it is null.
  ///
  /// @param what the message of the exception that wraps a checked one
  public static void rethrow(@Nullable Throwable failure, String what) {
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException(what, e);
    }
  }

  /// Runs all actions after `failure`, and adds what they throw to it as suppressed exceptions.
  public static void runAll(List<? extends Runnable> actions, Throwable failure) {
    try {
      runAll(actions);
    } catch (RuntimeException | Error besides) {
      failure.addSuppressed(besides);
    }
  }

  /// Does `work`. If that fails, runs `undo` and throws the failure, with what `undo` throws as suppressed.
  ///
  /// @return what `work` gives
  public static <T> T orUndo(Supplier<T> work, Runnable undo) {
    try {
      return work.get();
    } catch (Throwable failure) {
      runAll(List.of(undo), failure);
      throw failure;
    }
  }

  /// Does the same as [#orUndo(Supplier, Runnable)] for work without a result.
  public static void orUndo(Runnable work, Runnable undo) {
    Object _ =
        orUndo(
            () -> {
              work.run();
              return undo;
            },
            undo);
  }

  /// Waits until an executor that was shut down has finished its tasks, also if the caller is interrupted.
  public static void awaitEnd(ExecutorService threads) {
    awaitUninterruptibly(() -> threads.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS));
  }

  /// Waits until a thread has ended, also if the caller is interrupted.
  public static void join(Thread thread) {
    awaitUninterruptibly(() -> {
      thread.join();
      return true;
    });
  }

  /// Waits for something.
  @FunctionalInterface
  public interface Wait {
    /// Returns whether it has come.
    boolean once() throws InterruptedException;
  }

  /// Waits for something, also if the caller is interrupted.
  public static void awaitUninterruptibly(Wait wait) {
    boolean interrupted = false;
    boolean over = false;
    while (!over) {
      try {
        over = wait.once();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
