// SPDX-License-Identifier: Apache-2.0
package dev.gantry.testing.schedules;

import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/// The calls that instrumented classes make where another thread may go on.
///
/// Only one thread runs at a time, so nothing here is guarded. Monitors are locks of `java.util.concurrent`, since a
/// virtual thread that waits for such a lock is woken by the one that unlocks it, and by no thread of the JVM's.
public final class Points {
  private static final class Monitor {
    final ReentrantLock lock = new ReentrantLock();
    final Condition condition = lock.newCondition();
  }

  private static final IdentityHashMap<Object, Monitor> MONITORS = new IdentityHashMap<>();
  private static final List<BooleanSupplier> WATCHED = new ArrayList<>();

  private Points() {}

  /// Begins a schedule.
  static void reset() {
    MONITORS.clear();
    WATCHED.clear();
  }

  /// Another thread may go on here.
  @SuppressWarnings("ThreadPriorityCheck") // The explorer is the scheduler of these threads.
  public static void pass() {
    if (Thread.currentThread().isVirtual()) {
      Thread.yield();
    }
  }

  private static Monitor monitor(Object of) {
    return MONITORS.computeIfAbsent(of, _ -> new Monitor());
  }

  /// In place of `monitorenter`.
  public static void enter(Object of) {
    pass();
    monitor(of).lock.lock();
  }

  /// In place of `monitorexit`.
  public static void exit(Object of) {
    monitor(of).lock.unlock();
  }

  /// In place of `Object.wait()`.
  @SuppressWarnings("WaitNotInLoop") // The replaced call has its loop.
  public static void await(Object of) throws InterruptedException {
    monitor(of).condition.await();
  }

  /// In place of `Object.notify()`.
  public static void wake(Object of) {
    monitor(of).condition.signal();
  }

  /// In place of `Object.notifyAll()`.
  public static void wakeAll(Object of) {
    monitor(of).condition.signalAll();
  }

  /// In place of the thread that frees what is idle: [#look] does what it does.
  public static void watch(BooleanSupplier look) {
    if (!WATCHED.contains(look)) {
      WATCHED.add(look);
    }
  }

  /// Looks once at all that is watched.
  public static void look() {
    for (BooleanSupplier watched : List.copyOf(WATCHED)) {
      boolean _ = watched.getAsBoolean();
    }
  }
}
