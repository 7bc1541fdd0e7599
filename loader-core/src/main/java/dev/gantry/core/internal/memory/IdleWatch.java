// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.LoggerFactory;

/// The process's one thread that frees resources which were idle for some seconds. It runs only
/// while something is watched.
public final class IdleWatch {
  private static final long LOOK_MILLIS = 250;

  private static final ScheduledThreadPoolExecutor THREAD =
      new ScheduledThreadPoolExecutor(
          1, Thread.ofPlatform().daemon().name("gantry-idle-watch").factory());

  static {
    THREAD.setKeepAliveTime(LOOK_MILLIS, TimeUnit.MILLISECONDS);
    THREAD.allowCoreThreadTimeOut(true);
  }

  /// The functions that the thread is going to call.
  private static final Set<BooleanSupplier> WATCHED = ConcurrentHashMap.newKeySet();

  private IdleWatch() {}

  /// Has the thread call `look` four times a second, until `look` returns false.
  ///
  /// @param look frees resources that were idle for too long, and returns whether anything is left
  ///     to watch. Callers pass the same object each time
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
    // A call of [#watch] from here on has `look` called again, even if this call of `look` returns
    // that nothing is left.
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
