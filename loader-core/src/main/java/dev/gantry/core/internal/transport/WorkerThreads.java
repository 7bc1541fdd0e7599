package dev.gantry.core.internal.transport;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// Threads that share one job. The first failure, or a cancellation, stops all of them; [#work]
/// returns or throws only when the last of them has ended, so that the caller may then free what
/// they used. For one use.
public final class WorkerThreads {
  private static final long PROGRESS_MILLIS = 100;

  private final String operation;
  private final String threadName;
  private final Cancellation cancellation;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  /// Tells those who sleep that the crew has failed.
  private final Cancellation stop = new Cancellation();

  /// @param operation what a cancellation is said to have ended
  /// @param threadName to which each thread's number is added
  /// @param cancellation ends the job early
  public WorkerThreads(String operation, String threadName, Cancellation cancellation) {
    this.operation = operation;
    this.threadName = threadName;
    this.cancellation = cancellation;
  }

  /// Whether somebody failed, or the job was cancelled.
  public boolean hasFailed() {
    return failure.get() != null;
  }

  /// Stops everybody, unless somebody has failed before. For the threads themselves.
  public void fail(Throwable reason) {
    if (failure.compareAndSet(null, reason)) {
      stop.cancel();
    }
  }

  /// Has `action` run once when a thread fails or the job is cancelled: for threads of the crew
  /// that sleep.
  public void whenFailed(Runnable action) {
    Runnable _ = stop.whenCancelled(action);
  }

  /// Whether to take the next piece of work.
  public boolean goesOn() {
    if (cancellation.isCancelled()) {
      fail(cancelled());
    }
    return !hasFailed();
  }

  /// Does `job` on each of `threads` threads, or on fewer where the machine has no more to give.
  ///
  /// An interruption of the caller cancels.
  ///
  /// @param job calls [#fail] and returns when it cannot go on; what it throws fails the crew, too
  /// @param progress is called now and then on this thread while nobody has failed, and once at the
  ///     end
  public void work(int threads, Runnable job, Runnable progress) {
    Runnable forget = cancellation.whenCancelled(() -> fail(cancelled()));
    try {
      startAndAwait(threads, job, progress);
    } finally {
      forget.run();
    }
    rethrow();
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

  /// Starts `threads` platform threads that keep no process alive, or fewer where the machine has
  /// no more to give: those that run do the work.
  ///
  /// @param threadName to which each thread's number is added
  /// @throws OutOfMemoryError if threads are wanted and there is not one to be had
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

  /// Goes on unless the job was cancelled by now: for the caller after [#work], before what cannot
  /// be taken back.
  public void checkpoint() {
    if (!goesOn()) {
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
        // Not passed on before the threads have ended: the caller frees what they use.
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
