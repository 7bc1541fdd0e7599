package dev.gantry.core.io;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.memory.Slab;
import dev.gantry.core.plan.ReadPlan;
import dev.gantry.core.plan.ReadPlan.Read;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Carries out a plan's reads with several readers at once. For one use, by one thread.
///
/// The first failure, or a cancellation, stops all readers; [#run] returns or throws only when the
/// last of them has ended and nothing is under way any more, so that the caller may free the slabs.
final class Transfer {
  private static final long PROGRESS_MILLIS = 100;

  private final List<Read> reads;
  private final List<Slab> slabs;
  private final Map<Path, Route> routes;
  private final @Nullable StagedPath fallback;
  private final TransferOptions options;
  private final AtomicInteger next = new AtomicInteger();
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private final Map<PathKind, Long> bytesByPath = new EnumMap<>(PathKind.class);
  private final LongAdder done = new LongAdder();
  private final LongAdder directBytes = new LongAdder();

  /// @param fallback where a file goes that cuFile refuses in mid-way, or null where that is an
  ///     error
  Transfer(
      ReadPlan plan,
      List<Slab> slabs,
      Map<Path, Route> routes,
      @Nullable StagedPath fallback,
      TransferOptions options) {
    this.reads = plan.reads();
    this.slabs = slabs;
    this.routes = routes;
    this.fallback = fallback;
    this.options = options;
  }

  TransferReport run(int threads) {
    long start = System.nanoTime();
    int readers = Math.min(threads, reads.size());
    CountDownLatch ended = new CountDownLatch(readers);
    int started = 0;
    try {
      for (; started < readers; started++) {
        Thread.ofPlatform()
            .name("gantry-reader-" + started)
            .daemon()
            .start(() -> {
              try {
                readAll();
              } finally {
                ended.countDown();
              }
            });
      }
    } catch (OutOfMemoryError e) {
      // No more threads to be had: those that run do the work, or, with none, the failure is
      // reported.
      if (started == 0) {
        failure.compareAndSet(null, e);
      }
      for (int i = started; i < readers; i++) {
        ended.countDown();
      }
    }
    awaitReaders(ended);
    rethrow();
    return report(Duration.ofNanos(System.nanoTime() - start));
  }

  private void awaitReaders(CountDownLatch ended) {
    long total = reads.stream().mapToLong(Read::length).sum();
    boolean interrupted = false;
    while (true) {
      try {
        boolean over = ended.await(PROGRESS_MILLIS, TimeUnit.MILLISECONDS);
        if (failure.get() == null) {
          options.progress().onProgress(done.sum(), total);
        }
        if (over) {
          break;
        }
      } catch (InterruptedException _) {
        interrupted = true;
        failure.compareAndSet(null, cancelled());
      } catch (RuntimeException | Error e) {
        // Not passed on before the readers have ended: the caller frees what they fill.
        failure.compareAndSet(null, e);
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private void rethrow() {
    switch (failure.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException("a reader failed", e);
    }
  }

  /// One reader's work: takes the next read until there is none, or somebody failed.
  private void readAll() {
    Map<TransferPath, TransferPath.Lane> lanes = new HashMap<>();
    try {
      for (Read read = takeNext(); read != null; read = takeNext()) {
        carryOut(read, lanes);
      }
      if (failure.get() == null) {
        lanes.values().forEach(TransferPath.Lane::drain);
      }
    } catch (RuntimeException | Error e) {
      failure.compareAndSet(null, e);
    } finally {
      for (TransferPath.Lane lane : lanes.values()) {
        try {
          lane.close();
        } catch (RuntimeException | Error e) {
          failure.compareAndSet(null, e);
        }
      }
    }
  }

  private @Nullable Read takeNext() {
    if (options.cancellation().isCancelled()) {
      failure.compareAndSet(null, cancelled());
    }
    if (failure.get() != null) {
      return null;
    }
    int index = next.getAndIncrement();
    return index < reads.size() ? reads.get(index) : null;
  }

  private void carryOut(Read read, Map<TransferPath, TransferPath.Lane> lanes) {
    Route route = routes.get(read.file());
    if (route == null) {
      throw new IllegalStateException("no route to " + read.file());
    }
    Slab target = slabs.get(read.slab());
    boolean direct = route.file().prefersDirect(read.fileOffset(), read.length());
    TransferPath path = route.path(direct);
    boolean went;
    try {
      went = lane(path, lanes).read(route.file(), read, target, direct);
    } catch (TransferException e) {
      if (!(path instanceof CuFilePath) || fallback == null) {
        throw e;
      }
      route.fallBack(fallback, e);
      path = fallback;
      went = lane(path, lanes).read(route.file(), read, target, direct);
    }
    // What cuFile reads through the page cache passes the CPU, whatever it does with the rest.
    PathKind kind = path instanceof CuFilePath && !went ? PathKind.COMPAT : Route.kind(path);
    synchronized (bytesByPath) {
      bytesByPath.merge(kind, read.length(), Long::sum);
    }
    done.add(read.length());
    if (went) {
      directBytes.add(read.length());
    }
  }

  private static TransferPath.Lane lane(
      TransferPath path, Map<TransferPath, TransferPath.Lane> lanes) {
    return lanes.computeIfAbsent(path, TransferPath::openLane);
  }

  private static TransferException cancelled() {
    return new TransferException("load", "by the caller", new Failure.Cancelled());
  }

  private TransferReport report(Duration elapsed) {
    List<TransferReport.FileReport> files = new ArrayList<>();
    routes.values().forEach(route -> files.add(route.report()));
    return new TransferReport(bytesByPath, directBytes.sum(), reads.size(), files, elapsed);
  }
}
