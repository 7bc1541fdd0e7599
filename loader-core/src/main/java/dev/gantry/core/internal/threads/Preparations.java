// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.threads;

import dev.gantry.core.GantryException;
import dev.gantry.core.internal.memory.Cleanup;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/// Runs in the background what a load would otherwise do for the first time by itself: starting
/// libcuda, loading classes, linking native functions. Thread-safe.
public final class Preparations {
  private static final Set<Thread> RUNNING = ConcurrentHashMap.newKeySet();

  /// The names of the preparations that begin only once.
  private static final Set<String> BEGUN = ConcurrentHashMap.newKeySet();

  private Preparations() {}

  /// Makes the JVM's exit wait for the preparations, because native libraries must not be torn
  /// down while they start.
  private static final class ExitHook {
    static final boolean ADDED = add();

    private static boolean add() {
      try {
        Runtime.getRuntime().addShutdownHook(new Thread(Preparations::await));
        return true;
      } catch (IllegalStateException _) {
        return false;
      }
    }
  }

  /// Begins a preparation, and returns without waiting. Failures are ignored, because the load
  /// meets the same failure and reports it. Does nothing if the JVM is ending.
  ///
  /// @param name the name of the thread
  public static void begin(String name, Runnable work) {
    if (!ExitHook.ADDED) {
      return;
    }
    Thread thread =
        Thread.ofPlatform()
            .daemon()
            .inheritInheritableThreadLocals(false)
            .name(name)
            .unstarted(() -> {
              try {
                work.run();
              } catch (GantryException | LinkageError | OutOfMemoryError _) {
                // The load meets the same failure and reports it, unless the heap has enough
                // memory by then.
              } finally {
                RUNNING.remove(Thread.currentThread());
              }
            });
    start(thread);
  }

  static void start(Thread thread) {
    RUNNING.add(thread);
    try {
      thread.start();
    } catch (OutOfMemoryError _) {
      // The process may not start more threads now; the load prepares what it needs itself.
      RUNNING.remove(thread);
    }
  }

  /// Begins a preparation of this name, unless it has begun before in this process.
  public static void beginOnce(String name, Runnable work) {
    if (BEGUN.add(name)) {
      begin(name, work);
    }
  }

  /// Waits for the other preparations that have begun.
  public static void await() {
    for (Thread thread : RUNNING) {
      if (!thread.equals(Thread.currentThread())) {
        Cleanup.join(thread);
      }
    }
  }
}
