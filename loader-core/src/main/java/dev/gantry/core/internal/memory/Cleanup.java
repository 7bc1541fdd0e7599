// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Cleans up in several steps, and does every step even if others fail. Thread-safe.
public final class Cleanup {
  private Cleanup() {}

  /// Runs all actions even if some fail, in whatever way; then throws the first failure, with the others as suppressed
  /// exceptions.
  public static void runAll(List<? extends Runnable> actions) {
    forEach(actions, Runnable::run);
  }

  /// Does `action` for each of `items` as [#runAll(List)] runs actions. Makes nothing on the way: the heap may be full.
  public static <T> void forEach(Iterable<? extends T> items, Consumer<? super T> action) {
    Throwable first = null;
    for (T item : items) {
      try {
        action.accept(item);
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
    after(failure, Cleanup::runAll, actions);
  }

  /// Does `action` with `item` after `failure`, and adds what that throws to it as suppressed.
  public static <T> void after(Throwable failure, Consumer<? super T> action, T item) {
    try {
      action.accept(item);
    } catch (RuntimeException | Error besides) {
      failure.addSuppressed(besides);
    }
  }

  /// Takes something, and does `work` with it. If that fails, runs `undo` and throws the failure, with what `undo` throws
  /// as suppressed.
  ///
  /// Use this for what must not stay when the heap ends: all three are made before anything is taken.
  ///
  /// @return what `work` gives
  public static <R, T> T orUndo(
      Supplier<? extends R> take, Function<? super R, ? extends T> work, Consumer<? super R> undo) {
    R taken = take.get();
    try {
      return work.apply(taken);
    } catch (Throwable failure) {
      after(failure, undo, taken);
      throw failure;
    }
  }

  /// Does `work`. If that fails, runs `undo` and throws the failure, with what `undo` throws as suppressed.
  ///
  /// @return what `work` gives
  public static <T> T orUndo(Supplier<T> work, Runnable undo) {
    try {
      return work.get();
    } catch (Throwable failure) {
      after(failure, Runnable::run, undo);
      throw failure;
    }
  }

  /// Does the same as [#orUndo(Supplier, Runnable)] for work without a result.
  public static void orUndo(Runnable work, Runnable undo) {
    try {
      work.run();
    } catch (Throwable failure) {
      after(failure, Runnable::run, undo);
      throw failure;
    }
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
