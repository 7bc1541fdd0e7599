// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.LoggerFactory;

/// The process's one thread that gives back what was not used for a while. It runs only while something is watched.
public final class IdleWatch {
  private static final long LOOK_MILLIS = 250;

  private static final ScheduledThreadPoolExecutor THREAD =
      new ScheduledThreadPoolExecutor(
          1, Thread.ofPlatform().daemon().name("gantry-idle-watch").factory());

  static {
    THREAD.setKeepAliveTime(LOOK_MILLIS, TimeUnit.MILLISECONDS);
    THREAD.allowCoreThreadTimeOut(true);
  }

  /// The looks that the thread is going to call.
  private static final Set<BooleanSupplier> WATCHED = ConcurrentHashMap.newKeySet();

  private IdleWatch() {}

  /// Has `look` called four times a second, until it returns false.
  ///
  /// @param look gives back what was idle for long, and returns whether anything is left to watch. Callers pass the
  ///     same object each time
  public static void watch(BooleanSupplier look) {
    if (!WATCHED.add(look)) {
      return;
    }
    try {
      Future<?> _ = THREAD.schedule(() -> look(look), LOOK_MILLIS, TimeUnit.MILLISECONDS);
    } catch (OutOfMemoryError e) {
      // The next call tries again.
      WATCHED.remove(look);
      LoggerFactory.getLogger(IdleWatch.class).warn("no thread gives back idle memory for now", e);
    }
  }

  private static void look(BooleanSupplier look) {
    // A call of watch from here on has the look called again, even if this one says that nothing is
    // left.
    WATCHED.remove(look);
    boolean left = true;
    try {
      left = look.getAsBoolean();
    } catch (RuntimeException | Error e) {
      LoggerFactory.getLogger(IdleWatch.class).warn("idle memory could not be given back", e);
    } finally {
      if (left) {
        watch(look);
      }
    }
  }
}
