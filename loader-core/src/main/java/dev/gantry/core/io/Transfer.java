package dev.gantry.core.io;

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
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Carries out a plan's reads with several readers at once. For one use, by one thread.
///
/// The first failure, or a cancellation, stops all readers; [#run] returns or throws only when the
/// last of them has ended and nothing is under way any more, so that the caller may free the slabs.
final class Transfer {
  private final List<Read> reads;
  private final List<Slab> slabs;
  private final Map<Path, Route> routes;
  private final @Nullable StagedPath fallback;
  private final TransferOptions options;
  private final AtomicInteger next = new AtomicInteger();
  private final Crew crew = new Crew("load", "gantry-reader-");
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
    long total = reads.stream().mapToLong(Read::length).sum();
    crew.work(
        Math.min(threads, reads.size()),
        this::readAll,
        () -> options.progress().onProgress(done.sum(), total));
    return report(Duration.ofNanos(System.nanoTime() - start));
  }

  /// One reader's work: takes the next read until there is none, or somebody failed.
  private void readAll() {
    Map<TransferPath, TransferPath.Lane> lanes = new HashMap<>();
    try {
      for (Read read = takeNext(); read != null; read = takeNext()) {
        carryOut(read, lanes);
      }
      if (!crew.hasFailed()) {
        lanes.values().forEach(TransferPath.Lane::drain);
      }
    } catch (RuntimeException | Error e) {
      crew.fail(e);
    } finally {
      for (TransferPath.Lane lane : lanes.values()) {
        try {
          lane.close();
        } catch (RuntimeException | Error e) {
          crew.fail(e);
        }
      }
    }
  }

  private @Nullable Read takeNext() {
    if (!crew.goesOn(options.cancellation())) {
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

  private TransferReport report(Duration elapsed) {
    List<TransferReport.FileReport> files = new ArrayList<>();
    routes.values().forEach(route -> files.add(route.report()));
    return new TransferReport(bytesByPath, directBytes.sum(), reads.size(), files, elapsed);
  }
}
