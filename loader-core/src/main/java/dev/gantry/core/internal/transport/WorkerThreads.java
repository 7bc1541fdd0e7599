// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Threads that share one job. The first failure, or a cancellation, stops all of them. [#work] returns
/// or throws only when all of them have ended, so that the caller can then free what they used. For
/// one use.
public final class WorkerThreads {
  private static final long PROGRESS_MILLIS = 100;

  private final String operation;
  private final String threadName;
  private final Cancellation cancellation;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  /// Wakes sleeping threads when the job fails.
  private final Cancellation stop = new Cancellation();

  /// @param operation the operation that a cancellation's message names
  /// @param threadName to which each thread's number is added
  /// @param cancellation ends the job early
  public WorkerThreads(String operation, String threadName, Cancellation cancellation) {
    this.operation = operation;
    this.threadName = threadName;
    this.cancellation = cancellation;
  }

  /// Whether a thread failed, or the job was cancelled.
  public boolean hasFailed() {
    return failure.get() != null;
  }

  /// Stops all threads. The first reason counts. Called by the threads themselves.
  public void fail(Throwable reason) {
    if (failure.compareAndSet(null, reason)) {
      stop.cancel();
    }
  }

  /// Runs `action` once when a thread fails or the job is cancelled, to wake threads that sleep.
  public void whenFailed(Runnable action) {
    Runnable _ = stop.whenCancelled(action);
  }

  /// Whether to take more work: the job has not failed and was not cancelled.
  public boolean mayContinue() {
    if (cancellation.isCancelled()) {
      fail(cancelled());
    }
    return !hasFailed();
  }

  /// Runs `job` on each of `threads` threads, or on fewer if no more can be started.
  ///
  /// An interruption of the caller cancels.
  ///
  /// @param job calls [#fail] and returns, or throws, when it cannot continue
  /// @param progress called now and then on this thread while nothing has failed, and once at the end
  public void work(int threads, Runnable job, Runnable progress) {
    Runnable forget = cancellation.whenCancelled(() -> fail(cancelled()));
    try {
      startAndAwait(threads, job, progress);
    } finally {
      forget.run();
    }
    rethrow();
  }

  /// Does `action` for each of `items`, each once, on at most `threads` threads; as [#work] otherwise.
  public <T> void forEach(
      int threads, List<T> items, Consumer<? super T> action, Runnable progress) {
    WorkQueue<T> queue = new WorkQueue<>(this, items);
    work(
        Math.min(threads, items.size()),
        () -> {
          for (T item = queue.take(); item != null; item = queue.take()) {
            action.accept(item);
          }
        },
        progress);
  }

  private void startAndAwait(int threads, Runnable job, Runnable progress) {
    CountDownLatch ended = new CountDownLatch(threads);
    int started = 0;
    try {
      started = start(threads, threadName, () -> run(job, ended)).size();
    } catch (OutOfMemoryError e) {
      fail(e);
    }
    for (int i = started; i < threads; i++) {
      ended.countDown();
    }
    await(ended, progress);
  }

  /// Starts `threads` daemon platform threads, or fewer if no more can be started: those that run do
  /// the work.
  ///
  /// @param threadName to which each thread's number is added
  /// @throws OutOfMemoryError if not even one thread can be started
  public static List<Thread> start(int threads, String threadName, Runnable job) {
    List<Thread> started = new ArrayList<>(threads);
    try {
      while (started.size() < threads) {
        started.add(Thread.ofPlatform().name(threadName + started.size()).daemon().start(job));
      }
    } catch (OutOfMemoryError e) {
      if (started.isEmpty()) {
        throw e;
      }
    }
    return started;
  }

  /// Waits until all of these threads have ended, also if the caller is interrupted.
  public static void join(List<Thread> threads) {
    boolean interrupted = false;
    for (Thread thread : threads) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException _) {
          interrupted = true;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Throws if the job was cancelled by now. Callers call this after [#work], before a step that
  /// cannot be undone.
  public void throwIfCancelled() {
    if (!mayContinue()) {
      rethrow();
    }
  }

  private void run(Runnable job, CountDownLatch ended) {
    try {
      job.run();
    } catch (RuntimeException | Error e) {
      fail(e);
    } finally {
      ended.countDown();
    }
  }

  private void await(CountDownLatch ended, Runnable progress) {
    boolean interrupted = false;
    while (true) {
      try {
        boolean over = ended.await(PROGRESS_MILLIS, TimeUnit.MILLISECONDS);
        if (!hasFailed()) {
          progress.run();
        }
        if (over) {
          break;
        }
      } catch (InterruptedException _) {
        interrupted = true;
        fail(cancelled());
      } catch (RuntimeException | Error e) {
        // Thrown only after the threads have ended, since the caller frees what they use.
        fail(e);
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void rethrow() {
    switch (failure.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException("a thread failed", e);
    }
  }

  private TransferException cancelled() {
    return new TransferException(operation, "by the caller", new Failure.Cancelled());
  }
}
