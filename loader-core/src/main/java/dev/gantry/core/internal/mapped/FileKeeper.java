// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.slf4j.LoggerFactory;

/// Runs the jobs that register or copy files, one after another, on a background thread.
/// Thread-safe.
final class FileKeeper {
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().daemon().name("gantry-mapper").factory());

  private CompletableFuture<?> last = CompletableFuture.completedFuture(null);

  /// @throws OutOfMemoryError if no thread can be started; `job` is not run then
  synchronized void start(Runnable job) {
    last =
        CompletableFuture.runAsync(job, thread)
            .whenComplete((_, failure) -> {
              if (failure != null) {
                LoggerFactory.getLogger(FileKeeper.class)
                    .warn("a file was not kept in memory", failure);
              }
            });
  }

  private synchronized CompletableFuture<?> last() {
    return last;
  }

  /// Waits for all jobs that were started, also if the caller is interrupted.
  void await() {
    last().handle((_, _) -> true).join();
  }

  /// Lets the thread end. No job may be started after this call.
  void close() {
    thread.shutdown();
  }
}
