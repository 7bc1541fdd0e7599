// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.IntStream;

/// A fixed number of threads that do the same work.
public final class Threads implements AutoCloseable {
  /// What a thread does; its number counts from 0 on.
  @FunctionalInterface
  public interface Part {
    void run(int thread) throws Exception;
  }

  private final int count;
  private final ExecutorService pool;

  public Threads(int count) {
    this.count = count;
    pool =
        Executors.newFixedThreadPool(
            count, Thread.ofPlatform().daemon().name("gantry-bench-", 0).factory());
  }

  /// Returns when all parts are done.
  public void run(Part part) throws Exception {
    List<Callable<Void>> parts =
        IntStream.range(0, count)
            .<Callable<Void>>mapToObj(thread ->
                () -> {
                  part.run(thread);
                  return null;
                })
            .toList();
    for (Future<Void> done : pool.invokeAll(parts)) {
      try {
        done.get();
      } catch (ExecutionException e) {
        throw e.getCause() instanceof Exception cause ? cause : e;
      }
    }
  }

  public static String count(int threads) {
    return threads == 1 ? "1 thread" : threads + " threads";
  }

  @Override
  public void close() {
    pool.shutdownNow();
  }
}
