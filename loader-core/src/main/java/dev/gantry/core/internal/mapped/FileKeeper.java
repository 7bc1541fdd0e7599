// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.internal.memory.Cleanup;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// Registers or copies files one after the other in the background, on a thread that runs while there are some.
/// Thread-safe.
final class FileKeeper {
  private static final Logger LOG = LoggerFactory.getLogger(FileKeeper.class);

  private final Deque<Runnable> jobs = new ArrayDeque<>();
  private @Nullable Thread thread;

  /// @throws OutOfMemoryError if no thread can be started; `job` is not run then
  synchronized void start(Runnable job) {
    if (thread == null) {
      thread = Thread.ofPlatform().daemon().name("gantry-mapper").start(this::work);
    }
    jobs.add(job);
  }

  /// Runs all jobs. Goes on after any failure, since no other thread takes the place of this one.
  private void work() {
    for (Runnable job = next(); job != null; job = next()) {
      try {
        run(job);
      } catch (RuntimeException | Error _) {
        // There was no memory even to log why a job failed.
      }
    }
  }

  private static void run(Runnable job) {
    try {
      job.run();
    } catch (RuntimeException | Error e) {
      LOG.warn("a file was not kept in memory", e);
    }
  }

  private synchronized @Nullable Runnable next() {
    Runnable job = jobs.poll();
    if (job == null) {
      thread = null;
    }
    return job;
  }

  /// Waits for all jobs that were started.
  void await() {
    Thread running = running();
    if (running != null) {
      Cleanup.join(running);
    }
  }

  private synchronized @Nullable Thread running() {
    return thread;
  }
}
