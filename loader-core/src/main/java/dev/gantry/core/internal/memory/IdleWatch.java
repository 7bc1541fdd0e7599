// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.memory;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// The process's one thread that gives back what was not used for a while. It runs while there is
/// something to look at.
public final class IdleWatch {
  private static final Logger LOG = LoggerFactory.getLogger(IdleWatch.class);
  private static final long LOOK_MILLIS = 250;

  /// Guards itself, and `running`.
  private static final Set<BooleanSupplier> WATCHED = new LinkedHashSet<>();

  private static boolean running;

  private IdleWatch() {}

  /// Has `look` called four times a second, until it returns false.
  ///
  /// @param look gives back what was idle for long; returns whether anything is left to look at. The
  ///     same object each time
  public static void watch(BooleanSupplier look) {
    synchronized (WATCHED) {
      WATCHED.add(look);
      if (!running) {
        Thread.ofPlatform().daemon().name("gantry-idle-watch").start(IdleWatch::run);
        running = true;
      }
    }
  }

  private static void run() {
    while (true) {
      List<BooleanSupplier> looks;
      synchronized (WATCHED) {
        if (WATCHED.isEmpty()) {
          running = false;
          return;
        }
        looks = List.copyOf(WATCHED);
      }
      sleep();
      looks.forEach(IdleWatch::look);
    }
  }

  private static void look(BooleanSupplier look) {
    // Before it looks: what comes meanwhile is watched again.
    synchronized (WATCHED) {
      WATCHED.remove(look);
    }
    boolean left = true;
    try {
      left = look.getAsBoolean();
    } catch (RuntimeException e) {
      LOG.warn("idle memory could not be given back", e);
    }
    if (left) {
      watch(look);
    }
  }

  private static void sleep() {
    try {
      Thread.sleep(LOOK_MILLIS);
    } catch (InterruptedException _) {
      // No code interrupts it.
    }
  }
}
