// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import static dev.gantry.testing.Latches.await;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.gantry.core.Cancellation;
import dev.gantry.testing.Latches;
import java.io.IOException;
import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class WorkerThreadsTest {
  private static final int THREADS = 3;

  private static void work(Runnable job) {
    new WorkerThreads("test", () -> "a file", "test-", new Cancellation())
        .work(THREADS, job, () -> {});
  }

  private static void countDownAndAwait(CountDownLatch latch) {
    latch.countDown();
    await(latch);
  }

  @Test
  void threadsAreKeptFromJobToJob() {
    Set<Thread> all = ConcurrentHashMap.newKeySet();
    int jobs = 200;
    for (int i = 0; i < jobs; i++) {
      CountDownLatch together = new CountDownLatch(THREADS);
      work(() -> {
        all.add(Thread.currentThread());
        countDownAndAwait(together);
      });
    }
    // A job may start before the threads of the job before it are idle again.
    assertThat(all).hasSizeLessThan(jobs);
  }

  @Test
  void aJobFindsNothingOfTheOneBefore() {
    work(() -> Thread.currentThread().interrupt());
    ClassLoader loader = new ClassLoader() {};
    Thread caller = Thread.currentThread();
    ClassLoader before = caller.getContextClassLoader();
    caller.setContextClassLoader(loader);
    Set<Object> seen = ConcurrentHashMap.newKeySet();
    Set<String> names = ConcurrentHashMap.newKeySet();
    CountDownLatch together = new CountDownLatch(THREADS);
    try {
      work(() -> {
        Thread self = Thread.currentThread();
        seen.add(self.isInterrupted());
        seen.add(self.getContextClassLoader());
        names.add(self.getName());
        countDownAndAwait(together);
      });
    } finally {
      caller.setContextClassLoader(before);
    }
    assertThat(seen).isEqualTo(Set.of(false, loader));
    assertThat(names).isEqualTo(Set.of("test-0", "test-1", "test-2"));
  }

  @Test
  void aFailureIsThrownWhenAllHaveEnded() {
    Set<Thread> ended = ConcurrentHashMap.newKeySet();
    CountDownLatch together = new CountDownLatch(THREADS);
    assertThatThrownBy(() ->
            work(() -> {
              countDownAndAwait(together);
              ended.add(Thread.currentThread());
              throw new IllegalStateException("mine");
            }))
        .hasMessage("mine");
    assertThat(ended).hasSize(THREADS);
  }

  /// A thread whose first entry in a set finds no heap.
  private static final class WithoutHeap extends Thread {
    private boolean failed;

    WithoutHeap(Runnable work) {
      super(work);
    }

    @Override
    public int hashCode() {
      if (!failed) {
        failed = true;
        throw new OutOfMemoryError("the heap is full");
      }
      return System.identityHashCode(this);
    }
  }

  @Test
  void aFullHeapBeforeAJobNeitherSkipsTheJobNorHangsItsCaller() throws InterruptedException {
    WorkerThreads.Started started = new WorkerThreads.Started();
    started.count = 1;
    AtomicInteger ran = new AtomicInteger();
    Thread thread = new WithoutHeap(() -> started.run("test-0", null, ran::incrementAndGet));
    thread.start();
    thread.join();
    assertThat(started.join(0)).as("the job has ended").isTrue();
    assertThat(ran).hasValue(1);
  }

  /// The caller frees what the threads use.
  @Test
  void aProgressThatThrowsIsThrownWhenAllHaveEnded() {
    WorkerThreads workers = new WorkerThreads("test", () -> "a file", "test-", new Cancellation());
    Set<Thread> ended = ConcurrentHashMap.newKeySet();
    assertThatThrownBy(() ->
            workers.work(
                THREADS,
                () -> {
                  Latches.awaitThat(workers::hasFailed);
                  ended.add(Thread.currentThread());
                },
                () -> {
                  throw new IllegalStateException("mine");
                }))
        .hasMessage("mine");
    assertThat(ended).hasSize(THREADS);
  }

  @Test
  void anInterruptionEndsTheWorkAndIsKept() {
    WorkerThreads workers = new WorkerThreads("test", () -> "a file", "test-", new Cancellation());
    AtomicInteger told = new AtomicInteger();
    workers.whenFailed(told::incrementAndGet);
    Thread.currentThread().interrupt();
    assertThatThrownBy(() -> workers.work(1, () -> Latches.awaitThat(workers::hasFailed), () -> {}))
        .hasMessageContaining("a file, on an interrupted thread");
    assertThat(Thread.interrupted()).isTrue();
    assertThat(told).hasValue(1);
  }

  @Test
  void whatIsPutBackIsTakenAgainUntilTheWorkFails() {
    WorkerThreads workers = new WorkerThreads("test", () -> "a file", "test-", new Cancellation());
    WorkQueue<String> queue = new WorkQueue<>(workers, List.of("a", "b"));
    assertThat(queue.take()).isEqualTo("a");
    assertThat(queue.take()).isEqualTo("b");
    assertThat(queue.hasMore()).isFalse();
    queue.putBack("a");
    assertThat(queue.hasMore()).isTrue();
    assertThat(queue.take()).isEqualTo("a");
    queue.putBack("b");
    workers.fail(new IllegalStateException("mine"));
    assertThat(queue.hasMore()).isFalse();
    assertThat(queue.take()).isNull();
  }

  @Test
  void theThreadsOfAJobAreKnownWhileItRuns() {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch end = new CountDownLatch(1);
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    WorkerThreads.Started started =
        WorkerThreads.start(
            1,
            "test-",
            () -> {
              threads.add(Thread.currentThread());
              running.countDown();
              await(end);
            });
    await(running);
    assertThat(threads).allMatch(started::contains);
    assertThat(started.contains(Thread.currentThread())).isFalse();
    end.countDown();
    started.join();
    assertThat(threads).noneMatch(started::contains);
  }

  /// Kept threads would otherwise keep the classes of a program that has ended.
  @Test
  void aThreadThatIsKeptForgetsTheProgramsClassLoader() throws IOException {
    Set<Thread> threads = ConcurrentHashMap.newKeySet();
    Thread self = Thread.currentThread();
    ClassLoader before = self.getContextClassLoader();
    try (URLClassLoader own = new URLClassLoader(new URL[0], before)) {
      self.setContextClassLoader(own);
      WorkerThreads.start(
              1,
              "test-",
              () -> {
                assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(own);
                threads.add(Thread.currentThread());
              })
          .join();
    } finally {
      self.setContextClassLoader(before);
    }
    assertThat(threads).hasSize(1).allMatch(thread -> thread.getContextClassLoader() == null);
  }

  /// A cancellation may live for many loads.
  @Test
  void theCancellationForgetsAJobThatHasEnded() {
    Cancellation cancellation = new Cancellation();
    WeakReference<WorkerThreads> ended = new WeakReference<>(ended(cancellation));
    Latches.awaitThat(() -> {
      System.gc();
      return ended.refersTo(null);
    });
    cancellation.cancel();
  }

  private static WorkerThreads ended(Cancellation cancellation) {
    WorkerThreads threads = new WorkerThreads("load", () -> "a file", "test-", cancellation);
    threads.work(1, () -> {}, () -> {});
    return threads;
  }
}
