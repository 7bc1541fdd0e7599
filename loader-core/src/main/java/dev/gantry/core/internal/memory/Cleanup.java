// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Cleaning up in several steps, each of which is done whatever becomes of the others. Thread-safe.
public final class Cleanup {
  private Cleanup() {}

  /// Runs all actions, also where one fails, in whatever way; then throws the first failure, which
  /// keeps the others as suppressed ones.
  public static void runAll(List<? extends Runnable> actions) {
    Throwable first = null;
    for (Runnable action : actions) {
      try {
        action.run();
      } catch (Throwable e) {
        // Also what a caller's code throws undeclared: the rest is still cleaned up.
        if (first == null) {
          first = e;
        } else if (!first.equals(e)) {
          first.addSuppressed(e);
        }
      }
    }
    rethrow(first, "a cleanup failed");
  }

  /// Throws what another thread or an earlier step failed by, if it did.
  ///
  /// @param what it was, for a checked exception, which is wrapped
  public static void rethrow(@Nullable Throwable failure, String what) {
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException(what, e);
    }
  }

  /// Runs all actions after `failure`, which keeps what they throw as suppressed exceptions.
  public static void runAll(List<? extends Runnable> actions, Throwable failure) {
    try {
      runAll(actions);
    } catch (RuntimeException | Error besides) {
      failure.addSuppressed(besides);
    }
  }

  /// Does `work`. If it fails, runs `undo` and throws the failure, which keeps what `undo` throws.
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

  /// As [#orUndo(Supplier, Runnable)], of work that gives nothing.
  public static void orUndo(Runnable work, Runnable undo) {
    Object _ =
        orUndo(
            () -> {
              work.run();
              return undo;
            },
            undo);
  }

  /// Waits until an executor that was shut down has done what it was given, also if the caller is interrupted.
  public static void awaitEnd(ExecutorService threads) {
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = threads.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS);
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Waits until a thread has ended, also if the caller is interrupted.
  public static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
