// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.natives.CuFile;
import java.io.IOException;
import java.io.Serial;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.Semaphore;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Threads that share one job. The first failure, or a cancellation, stops all of them. [#work] returns or throws only
/// when all of them have ended, so that the caller can then free the memory that they used. May be used once.
public final class WorkerThreads {
  private static final String INTERRUPTED = ", on an interrupted thread";

  private static final long PROGRESS_MILLIS = 100;
  private static final long KEPT_SECONDS = 10;
  private static final String KEPT_NAME = "gantry-kept";

  /// The number of checks whether a thread has ended. After that many checks, the kernel may have
  /// given the thread's number to another thread.
  private static final int MAX_PAUSES = 1000;

  private static final long PAUSE_NANOS = 1_000_000;

  /// Made once, since the end of a thread must be seen also without heap.
  private static final LinkOption[] FOLLOWED = {};

  /// The threads that have called libcufile and are ending, since their job is over.
  private static final Set<Leaving> LEAVING = ConcurrentHashMap.newKeySet();

  /// The process's pool of threads, which wait for a job or run one.
  private static final ThreadPoolExecutor KEPT =
      new ThreadPoolExecutor(
          0,
          Integer.MAX_VALUE,
          KEPT_SECONDS,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          WorkerThreads::newThread);

  private static Thread newThread(Runnable work) {
    return Thread.ofPlatform()
        .daemon()
        .inheritInheritableThreadLocals(false)
        .name(KEPT_NAME)
        .unstarted(() -> {
          try {
            work.run();
          } catch (Leaves _) {
            // The pool replaces a thread that ends by an exception.
          }
        });
  }

  /// An exception that ends a thread of the pool.
  private static final class Leaves extends RuntimeException {
    @Serial private static final long serialVersionUID = 1;

    Leaves() {
      super(null, null, false, false);
    }
  }

  /// @param task the thread's folder in `/proc`, which exists until the kernel has ended the thread
  private record Leaving(Thread thread, Path task) {
    static Leaving current() {
      Path task = Path.of("/proc/thread-self");
      try {
        task = task.resolveSibling(Files.readSymbolicLink(task));
      } catch (IOException _) {
        task = task.resolve("unknown");
      }
      return new Leaving(Thread.currentThread(), task);
    }

    boolean isOver() {
      return !thread.isAlive() && !Files.exists(task, FOLLOWED);
    }
  }

  private final String operation;
  private final Supplier<String> subject;
  private final String threadName;
  private final Cancellation cancellation;
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  /// Cancelled when the job fails, which wakes sleeping threads.
  private final Cancellation stop = new Cancellation();

  /// @param operation the operation that a cancellation's message names
  /// @param subject the files or memory that a cancellation's message names
  /// @param threadName the prefix of the threads' names, before each thread's number
  /// @param cancellation ends the job early
  public WorkerThreads(
      String operation, Supplier<String> subject, String threadName, Cancellation cancellation) {
    this.operation = operation;
    this.subject = subject;
    this.threadName = threadName;
    this.cancellation = cancellation;
  }

  /// Whether a thread failed, or the job was cancelled.
  public boolean hasFailed() {
    return failure.get() != null;
  }

  /// Stops all threads of the job. The threads call this method themselves. If it is called
  /// several times, [#work] throws the first reason.
  public void fail(Throwable reason) {
    if (failure.compareAndSet(null, reason)) {
      stop.cancel();
    }
  }

  /// Runs `action` once, when a thread fails or the job is cancelled. It should wake threads that sleep.
  public void whenFailed(Runnable action) {
    Runnable _ = stop.whenCancelled(action);
  }

  /// Whether threads should take more work: the job has not failed and was not cancelled.
  public boolean mayContinue() {
    if (cancellation.isCancelled()) {
      fail(cancelled());
    }
    return !hasFailed();
  }

  /// Runs `job` on each of `threads` threads, or on fewer if no more can be started.
  ///
  /// An interruption of the calling thread cancels the job.
  ///
  /// @param job calls [#fail] and returns, or throws, when it cannot continue
  /// @param progress called on the calling thread every 100 ms while nothing has failed, and once
  ///     at the end
  public void work(int threads, Runnable job, Runnable progress) {
    Runnable forget = cancellation.whenCancelled(() -> fail(cancelled()));
    try {
      await(start(threads, threadName, () -> run(job)), progress);
    } catch (OutOfMemoryError e) {
      fail(e);
    } finally {
      forget.run();
    }
    rethrow();
  }

  /// Runs `action` once for each of `items`, on at most `threads` threads. In all other respects
  /// this is [#work].
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

  /// Runs a job on `threads` daemon platform threads, or on fewer if no more can be started. After
  /// the job, the threads are kept for the next one for some seconds; threads that have called
  /// libcufile end.
  ///
  /// @param threadName the prefix of the threads' names, before each thread's number
  /// @throws OutOfMemoryError if not even one thread can be started
  public static Started start(int threads, String threadName, Runnable job) {
    Started started = new Started();
    ClassLoader loader = Thread.currentThread().getContextClassLoader();
    try {
      while (started.count < threads) {
        String name = threadName + started.count;
        KEPT.execute(() -> {
          started.run(name, loader, job);
          if (CuFile.Callers.hasThisThread()) {
            throw new Leaves();
          }
        });
        started.count++;
      }
    } catch (OutOfMemoryError e) {
      if (started.count == 0) {
        throw e;
      }
    }
    return started;
  }

  /// Waits for the end of the threads whose job is over and that called libcufile. The C library cleans up for a thread
  /// after [Thread#join] returns, so this waits until the kernel has ended the thread.
  public static void awaitCallersOfCuFile() {
    LEAVING.forEach(WorkerThreads::await);
  }

  private static void await(Leaving one) {
    Cleanup.join(one.thread());
    for (int i = 0; i < MAX_PAUSES && !one.isOver(); i++) {
      LockSupport.parkNanos(PAUSE_NANOS);
    }
    LEAVING.remove(one);
  }

  /// Threads that run a job. Thread-safe.
  public static final class Started {
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();
    private final Semaphore ended = new Semaphore(0);

    /// The number of started threads. Only the thread that starts them changes it.
    int count;

    Started() {}

    /// Runs the job on the calling thread. [#join] waits for this call, so this counts its end
    /// whatever fails here.
    void run(String name, @Nullable ClassLoader loader, Runnable job) {
      Thread self = Thread.currentThread();
      try {
        enter(self, name, loader);
        job.run();
      } finally {
        try {
          leave(self);
        } finally {
          ended.release();
        }
      }
    }

    /// Without heap, the thread keeps its old name, and the job still runs: the caller of a job that
    /// had not run would take its work for done.
    private void enter(Thread self, String name, @Nullable ClassLoader loader) {
      try {
        self.setContextClassLoader(loader);
        threads.add(self);
        self.setName(name);
      } catch (OutOfMemoryError _) {
        // The job reports that the heap is full, if it needs more than is left.
      }
    }

    private void leave(Thread self) {
      self.setContextClassLoader(null);
      threads.remove(self);
      if (CuFile.Callers.hasThisThread()) {
        LEAVING.removeIf(Leaving::isOver);
        LEAVING.add(Leaving.current());
      }
      self.setName(KEPT_NAME);
    }

    /// Whether `thread` is one of the threads, and its job has not ended.
    public boolean contains(Thread thread) {
      return threads.contains(thread);
    }

    /// Waits until the job has ended on all threads, also if the caller is interrupted.
    public void join() {
      ended.acquireUninterruptibly(count);
      ended.release(count);
    }

    /// @return whether the job has ended on all threads
    boolean join(long millis) throws InterruptedException {
      boolean all = await(() -> ended.tryAcquire(count, millis, TimeUnit.MILLISECONDS));
      ended.release(all ? count : 0);
      return all;
    }
  }

  /// Waits. If the caller is a thread of the common pool, the pool starts another thread
  /// meanwhile, since repeated requests begin on the pool's threads.
  ///
  /// @return the result of `wait`
  public static boolean await(Cleanup.Wait wait) throws InterruptedException {
    if (!ForkJoinTask.inForkJoinPool()) {
      return wait.once();
    }
    AtomicBoolean come = new AtomicBoolean();
    ForkJoinPool.managedBlock(
        new ForkJoinPool.ManagedBlocker() {
          private boolean over;

          @Override
          public boolean block() throws InterruptedException {
            come.set(wait.once());
            over = true;
            return true;
          }

          @Override
          public boolean isReleasable() {
            return over;
          }
        });
    return come.get();
  }

  /// Throws if the job has been cancelled. Call this after [#work], before a step that cannot be
  /// undone.
  public void throwIfCancelled() {
    if (!mayContinue()) {
      rethrow();
    }
  }

  private void run(Runnable job) {
    try {
      job.run();
    } catch (RuntimeException | Error e) {
      fail(e);
    }
  }

  private void await(Started started, Runnable progress) {
    boolean interrupted = false;
    while (true) {
      try {
        boolean over = started.join(PROGRESS_MILLIS);
        if (!hasFailed()) {
          progress.run();
        }
        if (over) {
          break;
        }
      } catch (InterruptedException _) {
        interrupted = true;
        fail(interrupted(operation, subject.get()));
      } catch (RuntimeException | Error e) {
        // The failure is thrown only after the threads have ended, since the caller frees what they
        // use.
        fail(e);
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /// Makes the error of an operation that an interrupt of the thread that called it cancelled.
  ///
  /// @param subject the object of the operation, as in any [TransferException]
  public static TransferException interrupted(String operation, String subject) {
    return new TransferException(operation, subject + INTERRUPTED, new Failure.Cancelled());
  }

  private void rethrow() {
    Cleanup.rethrow(failure.get(), "a thread failed");
  }

  private TransferException cancelled() {
    return new TransferException(operation, subject.get(), new Failure.Cancelled());
  }

  /// Names the files of an operation in an error: the first, and how many more there are.
  public static String names(Collection<?> files) {
    String first = files.isEmpty() ? "no file" : files.iterator().next().toString();
    return files.size() < 2 ? first : first + " and " + (files.size() - 1) + " more";
  }
}
