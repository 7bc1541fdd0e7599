// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.stub;

import dev.gantry.core.GantryException;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.testing.NoLeaks;
import java.io.IOException;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/// Repeats work in one process, with faults of [FaultyLibc] and interrupts of its thread. Each
/// time the work must succeed or fail with an error of Gantry; then the work runs without faults
/// and must succeed; then the process must hold the same resources as before. For programs that
/// run with the library preloaded.
public final class FaultLoop {
  private static final long LONGEST_SECONDS = 120;
  private static final long TELL_NANOS = TimeUnit.MINUTES.toNanos(1);

  /// The rates of faults, from one in 200 calls to one in 3.
  private static final List<Integer> RATES = List.of(200, 50, 20, 8, 3);

  /// Work that checks its own results.
  public interface Work {
    /// @throws Exception if the work fails; an [AssertionError] if the work ends without a failure
    ///     but with a wrong result
    void run() throws Exception;
  }

  private record Held(LiveResources.Snapshot resources, List<String> open, List<String> mapped) {
    static Held now() throws IOException {
      return new Held(NoLeaks.held(), NoLeaks.openFiles(), NoLeaks.mappedFiles());
    }
  }

  private final FaultyLibc libc;
  private final Map<String, Work> works = new LinkedHashMap<>();
  private final Map<String, Long> failures = new TreeMap<>();
  private final AtomicLong doneBy = new AtomicLong(Long.MAX_VALUE);
  private long runs;
  private long failed;
  private long interrupts;
  private final Queue<Throwable> uncaught = new ConcurrentLinkedQueue<>();
  private long toldNanos = System.nanoTime();
  private volatile String current = "the start";

  public FaultLoop(FaultyLibc libc) {
    this.libc = libc;
  }

  public FaultLoop with(String name, Work work) {
    works.put(name, work);
    return this;
  }

  /// Runs until `faults` faults were injected, and prints a summary.
  ///
  /// @throws AssertionError if work ends in a wrong state; the message has the work and its seed
  public void run(long seed, long faults) throws Exception {
    Thread.setDefaultUncaughtExceptionHandler((_, e) -> uncaught.add(e));
    Thread watch = Thread.ofPlatform().daemon().name("fault-watch").start(this::endIfStuck);
    for (Work work : works.values()) {
      work.run();
    }
    Held before = Held.now();
    Random random = new Random(seed);
    for (long round = 0; libc.injected() < faults; round++) {
      for (Map.Entry<String, Work> work : works.entrySet()) {
        current = work.getKey() + ", seed " + seed + ", round " + round;
        long drawn = random.nextLong();
        try {
          runFaulty(work.getKey(), work.getValue(), new Random(drawn));
          doneBy.set(System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_SECONDS));
          work.getValue().run();
          requireSame(before);
          if (!uncaught.isEmpty()) {
            throw new AssertionError("a thread ended by an exception", uncaught.remove());
          }
          if (System.nanoTime() - toldNanos > TELL_NANOS) {
            print();
            toldNanos = System.nanoTime();
          }
        } catch (Exception | AssertionError e) {
          throw new AssertionError(current + ": " + e, e);
        }
      }
    }
    doneBy.set(Long.MAX_VALUE);
    watch.interrupt();
    print();
  }

  private void runFaulty(String name, Work work, Random random) throws Exception {
    doneBy.set(System.nanoTime() + TimeUnit.SECONDS.toNanos(LONGEST_SECONDS));
    Thread interrupter =
        random.nextInt(8) == 0
            ? interrupt(Thread.currentThread(), random.nextLong(10_000_000))
            : null;
    libc.arm(
        random.nextLong(),
        RATES.get(random.nextInt(RATES.size())),
        EnumSet.allOf(FaultyLibc.Kind.class));
    runs++;
    try {
      work.run();
    } catch (GantryException | CompletionException e) {
      Throwable cause = e instanceof CompletionException ? e.getCause() : e;
      if (!(cause instanceof GantryException)) {
        throw e;
      }
      failed++;
      failures.merge(name, 1L, Long::sum);
    } finally {
      libc.disarm();
      while (interrupter != null && interrupter.isAlive()) {
        // The interrupter may not have interrupted yet.
        Thread.onSpinWait();
      }
      boolean _ = Thread.interrupted();
    }
  }

  private Thread interrupt(Thread target, long nanos) {
    interrupts++;
    return Thread.ofPlatform()
        .start(() -> {
          LockSupport.parkNanos(nanos);
          target.interrupt();
        });
  }

  private static void requireSame(Held before) throws IOException {
    Held now = Held.now();
    // Servers and readers on other threads notice the end of a connection a little later.
    for (int i = 0; i < 200 && !now.equals(before); i++) {
      LockSupport.parkNanos(5_000_000);
      now = Held.now();
    }
    if (!now.equals(before)) {
      throw new AssertionError("held " + now + ", and before " + before);
    }
  }

  /// Treats a hang as a failure: prints the stacks of all threads, and ends the process.
  private void endIfStuck() {
    while (!Thread.interrupted()) {
      LockSupport.parkNanos(TimeUnit.SECONDS.toNanos(1));
      if (System.nanoTime() > doneBy.get()) {
        System.err.println("no end after " + LONGEST_SECONDS + " s: " + current);
        Thread.getAllStackTraces()
            .forEach((thread, stack) -> System.err.println(thread + " " + List.of(stack)));
        Runtime.getRuntime().halt(3);
      }
    }
  }

  private void print() {
    Map<FaultyLibc.Kind, Long> kinds = new EnumMap<>(FaultyLibc.Kind.class);
    for (FaultyLibc.Kind kind : FaultyLibc.Kind.values()) {
      kinds.put(kind, libc.injected(kind));
    }
    Map<String, Long> functions = new LinkedHashMap<>();
    for (String function : FaultyLibc.FUNCTIONS) {
      functions.put(function, libc.injected(function));
    }
    System.out.printf(
        "injected faults survived: %d %s in %d runs and %d interrupts, of which %d failed %s%n"
            + "by function: %s%n",
        libc.injected(), kinds, runs, interrupts, failed, failures, functions);
  }
}
