// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Runs all steps of a cleanup, even if some fail. Thread-safe.
public final class Cleanup {
  private Cleanup() {}

  /// Runs all actions, even if some throw any kind of throwable; then throws the first failure,
  /// with the later ones as suppressed exceptions.
  public static void runAll(List<? extends Runnable> actions) {
    forEach(actions, Runnable::run);
  }

  /// Does `action` for each of `items` as [#runAll(List)] runs actions. This allocates no list of
  /// actions, since the heap may be full.
  public static <T> void forEach(Iterable<? extends T> items, Consumer<? super T> action) {
    Throwable first = null;
    for (T item : items) {
      try {
        action.accept(item);
      } catch (Throwable e) {
        // An action may also throw an undeclared checked exception; the later items are cleaned up
        // nevertheless.
        if (first == null) {
          first = e;
        } else if (!first.equals(e)) {
          first.addSuppressed(e);
        }
      }
    }
    if (first != null) {
      rethrow(first, "a cleanup failed");
    }
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

  /// Runs all actions after `failure`, and adds their exceptions to `failure` as suppressed ones.
  public static void runAll(List<? extends Runnable> actions, Throwable failure) {
    after(failure, Cleanup::runAll, actions);
  }

  /// Does `action` with `item` after `failure`, and adds an exception of the action to `failure`
  /// as suppressed.
  public static <T> void after(Throwable failure, Consumer<? super T> action, T item) {
    try {
      action.accept(item);
    } catch (RuntimeException | Error besides) {
      failure.addSuppressed(besides);
    }
  }

  /// Takes a resource and does `work` with it. If `work` fails, runs `undo` with the resource and
  /// throws the failure; an exception of `undo` is added to it as suppressed.
  ///
  /// A resource taken here is not lost when the heap is full: the three functions are allocated
  /// before the resource is taken.
  ///
  /// @return the result of `work`
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

  /// Does `work`. If it fails, runs `undo` and throws the failure; an exception of `undo` is added
  /// to it as suppressed.
  ///
  /// @return the result of `work`
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
    awaitUninterruptibly(
        threads, all -> all.awaitTermination(Long.MAX_VALUE, TimeUnit.NANOSECONDS));
  }

  /// Waits until a thread has ended, also if the caller is interrupted. This needs no heap.
  public static void join(Thread thread) {
    awaitUninterruptibly(
        thread,
        one -> {
          one.join();
          return true;
        });
  }

  /// A wait that an interruption can end.
  @FunctionalInterface
  public interface Wait {
    /// Waits, and returns whether the awaited event has happened.
    boolean once() throws InterruptedException;
  }

  @FunctionalInterface
  private interface WaitFor<T> {
    boolean once(T awaited) throws InterruptedException;
  }

  /// Repeats `wait` until the event has happened, also if the caller is interrupted.
  public static void awaitUninterruptibly(Wait wait) {
    awaitUninterruptibly(wait, Wait::once);
  }

  private static <T> void awaitUninterruptibly(T awaited, WaitFor<? super T> wait) {
    boolean interrupted = false;
    boolean over = false;
    while (!over) {
      try {
        over = wait.once(awaited);
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
