// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/// The calls that instrumented classes make at points where another thread may run.
///
/// Only one thread runs at a time, so no lock guards the state of this class. Monitors are locks
/// of `java.util.concurrent`: a virtual thread that waits for such a lock is woken by the thread
/// that releases it, and not by a thread of the JVM.
public final class Points {
  private static final class Monitor {
    final ReentrantLock lock = new ReentrantLock();
    final Condition condition = lock.newCondition();
  }

  private static final IdentityHashMap<Object, Monitor> MONITORS = new IdentityHashMap<>();
  private static final List<BooleanSupplier> WATCHED = new ArrayList<>();

  private Points() {}

  /// Resets the state for a new schedule.
  static void reset() {
    MONITORS.clear();
    WATCHED.clear();
  }

  /// A point: another thread may run here.
  @SuppressWarnings("ThreadPriorityCheck") // The explorer is the scheduler of these threads.
  public static void pass() {
    if (Thread.currentThread().isVirtual()) {
      Thread.yield();
    }
  }

  private static Monitor monitor(Object of) {
    return MONITORS.computeIfAbsent(of, _ -> new Monitor());
  }

  /// Replaces `monitorenter`.
  public static void enter(Object of) {
    pass();
    monitor(of).lock.lock();
  }

  /// Replaces `monitorexit`.
  public static void exit(Object of) {
    monitor(of).lock.unlock();
  }

  /// Replaces `Object.wait()`.
  @SuppressWarnings("WaitNotInLoop") // The replaced call has its loop.
  public static void await(Object of) throws InterruptedException {
    monitor(of).condition.await();
  }

  /// Replaces `Object.notify()`.
  public static void wake(Object of) {
    monitor(of).condition.signal();
  }

  /// Replaces `Object.notifyAll()`.
  public static void wakeAll(Object of) {
    monitor(of).condition.signalAll();
  }

  /// Replaces the registration at the thread that frees idle memory; [#look] does the work of this
  /// thread.
  public static void watch(BooleanSupplier look) {
    if (!WATCHED.contains(look)) {
      WATCHED.add(look);
    }
  }

  /// Calls everything that is watched once.
  public static void look() {
    for (BooleanSupplier watched : List.copyOf(WATCHED)) {
      boolean _ = watched.getAsBoolean();
    }
  }
}
