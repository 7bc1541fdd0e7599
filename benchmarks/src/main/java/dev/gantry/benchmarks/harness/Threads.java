// SPDX-License-Identifier: Apache-2.0
package dev.gantry.benchmarks.harness;

import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;

/// A fixed number of threads that do the same work.
public final class Threads implements AutoCloseable {
  /// The work of one thread; threads are numbered from 0.
  @FunctionalInterface
  public interface Part {
    void run(int thread) throws Exception;
  }

  /// The work of one thread on the range from `from` to `to`, exclusive.
  @FunctionalInterface
  public interface Piece {
    void run(int thread, long from, long to) throws Exception;
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

  /// Divides work into pieces. A thread takes the next piece when it has finished its last one.
  ///
  /// @param size the size of all pieces together
  /// @param step the size of each piece except the last
  public void run(long size, long step, Piece piece) throws Exception {
    AtomicLong next = new AtomicLong();
    run(thread -> {
      for (long at = next.getAndAdd(step); at < size; at = next.getAndAdd(step)) {
        piece.run(thread, at, Math.min(size, at + step));
      }
    });
  }

  /// The work on one file, which returns how much was done.
  @FunctionalInterface
  public interface FileWork {
    long run(Path file) throws Exception;
  }

  /// Processes all files, one file at a time on each thread, and returns the sum.
  public static long each(List<Path> files, int threads, FileWork work) throws Exception {
    AtomicLong done = new AtomicLong();
    try (Threads pool = new Threads(threads)) {
      pool.run(files.size(), 1, (_, i, _) -> done.addAndGet(work.run(files.get((int) i))));
    }
    return done.get();
  }

  public static String count(int threads) {
    return threads == 1 ? "1 thread" : threads + " threads";
  }

  @Override
  public void close() {
    pool.shutdownNow();
  }
}
