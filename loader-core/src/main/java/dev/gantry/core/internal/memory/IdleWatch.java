// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The process's one thread that gives back what was not used for a while. It runs only while something is watched.
public final class IdleWatch {
  private static final Logger LOG = LoggerFactory.getLogger(IdleWatch.class);
  private static final long LOOK_MILLIS = 250;

  /// Each watched look, with the number of the call of [#watch] that asked for it last. This map is also the lock of
  /// the two fields below.
  private static final Map<BooleanSupplier, Long> WATCHED = new LinkedHashMap<>();

  private static long asked;
  private static boolean running;

  private IdleWatch() {}

  /// Has `look` called four times a second, until it returns false.
  ///
  /// @param look gives back what was idle for long, and returns whether anything is left to watch. Callers pass the
  ///     same object each time
  public static void watch(BooleanSupplier look) {
    synchronized (WATCHED) {
      WATCHED.put(look, ++asked);
      if (!running) {
        try {
          Thread.ofPlatform().daemon().name("gantry-idle-watch").start(IdleWatch::run);
          running = true;
        } catch (OutOfMemoryError e) {
          // The next call of watch tries again.
          LOG.warn("no thread gives back idle memory for now", e);
        }
      }
    }
  }

  /// Runs until nothing is watched, whatever fails: no other thread takes its place.
  private static void run() {
    while (true) {
      try {
        List<BooleanSupplier> looks = looks();
        if (looks.isEmpty()) {
          return;
        }
        sleep();
        looks.forEach(IdleWatch::look);
      } catch (RuntimeException | Error _) {
        // Memory ran out in a look, or in logging why one failed.
        sleep();
      }
    }
  }

  private static List<BooleanSupplier> looks() {
    synchronized (WATCHED) {
      running = !WATCHED.isEmpty();
      return List.copyOf(WATCHED.keySet());
    }
  }

  private static void look(BooleanSupplier look) {
    Long before = lastAsked(look);
    boolean left = true;
    try {
      left = look.getAsBoolean();
    } catch (RuntimeException | Error e) {
      LOG.warn("idle memory could not be given back", e);
    }
    if (!left) {
      synchronized (WATCHED) {
        // A look that was asked for again meanwhile stays.
        boolean _ = WATCHED.remove(look, before);
      }
    }
  }

  private static @Nullable Long lastAsked(BooleanSupplier look) {
    synchronized (WATCHED) {
      return WATCHED.get(look);
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(LOOK_MILLIS);
    } catch (InterruptedException _) {
      // No code interrupts this thread.
    }
  }
}
