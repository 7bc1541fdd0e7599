package dev.gantry.core.internal.transport;

import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Carries out a plan's reads with several readers at once. For one use, by one thread.
///
/// The first failure, or a cancellation, stops all readers; [#run] returns or throws only when the
/// last of them has ended and nothing is under way any more, so that the caller may free the slabs.
final class Transfer {
  private final List<Read> reads;
  private final List<Target> targets;
  private final Map<Location, Route> routes;
  private final @Nullable StagedPath staged;
  private final TransferOptions options;
  private final AtomicInteger next = new AtomicInteger();

  /// Taken by readers that found no buffer for them. Of these, the last at least goes on waiting,
  /// until the read is taken by another or it has a buffer itself.
  private final Queue<Read> left = new ConcurrentLinkedQueue<>();

  private final WorkerThreads crew;
  private final TransferCounter counter = new TransferCounter();

  /// @param staged the one that routes name, or null where nothing is staged
  Transfer(
      ReadPlan plan,
      List<Slab> slabs,
      Map<Location, Route> routes,
      @Nullable StagedPath staged,
      TransferOptions options) {
    this.reads = plan.reads();
    this.targets = slabs.stream().map(Target::of).toList();
    this.routes = routes;
    this.staged = staged;
    this.options = options;
    this.crew = new WorkerThreads("load", "gantry-reader-", options.cancellation());
    crew.whenFailed(this::endWaiting);
  }

  TransferReport run(int threads) {
    long start = System.nanoTime();
    long total = reads.stream().mapToLong(Read::length).sum();
    int readers = Math.min(threads, reads.size());
    crew.work(
        readers,
        () -> readAll(requestsAtOnce(readers)),
        () -> options.progress().onProgress(counter.bytes(), total));
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    return counter.report(routes.values().stream().map(Route::report).toList(), elapsed);
  }

  /// Each reader's share of the requests that suit the files.
  private int requestsAtOnce(int readers) {
    int most = 1;
    for (Route route : routes.values()) {
      most = Math.max(most, route.file().requestsAtOnce());
    }
    return Math.ceilDiv(most, Math.max(1, readers));
  }

  /// One reader's work: takes the next read until there is none, or somebody failed.
  private void readAll(int requestsAtOnce) {
    try (Lanes lanes =
        new Lanes(staged, options.onlyTransport().isEmpty(), counter, requestsAtOnce)) {
      readAll(lanes);
    } catch (RuntimeException | Error e) {
      crew.fail(e);
    }
  }

  /// A failure is told before the lanes are closed, which may take a while.
  private void readAll(Lanes lanes) {
    try {
      for (Read read = takeNext(); read != null; read = takeNext()) {
        if (lanes.read(route(read), read, targets.get(read.slab()))) {
          lanes.giveWay();
        } else {
          left.add(read);
          lanes.awaitBuffers(this::isWorkLeft);
        }
      }
      wakeWaiting();
      if (!crew.hasFailed()) {
        lanes.drain();
      }
    } catch (RuntimeException | Error e) {
      crew.fail(e);
    }
  }

  private @Nullable Read takeNext() {
    if (!crew.mayContinue()) {
      return null;
    }
    Read read = left.poll();
    if (read != null) {
      return read;
    }
    int index = next.getAndIncrement();
    return index < reads.size() ? reads.get(index) : null;
  }

  private boolean isWorkLeft() {
    return crew.mayContinue() && (next.get() < reads.size() || !left.isEmpty());
  }

  private void endWaiting() {
    wakeWaiting();
    routes.values().forEach(route -> route.file().endReads());
  }

  private void wakeWaiting() {
    if (staged != null) {
      staged.buffers().wake();
    }
  }

  private Route route(Read read) {
    Route route = routes.get(read.file());
    if (route == null) {
      throw new IllegalStateException("no route to " + read.file());
    }
    return route;
  }
}
