package dev.gantry.core.io;

import dev.gantry.core.memory.Slab;
import dev.gantry.core.plan.ReadPlan;
import dev.gantry.core.plan.ReadPlan.Read;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/// Carries out a plan's reads with several readers at once. For one use, by one thread.
///
/// The first failure, or a cancellation, stops all readers; [#run] returns or throws only when the
/// last of them has ended and nothing is under way any more, so that the caller may free the slabs.
final class Transfer {
  private final List<Read> reads;
  private final List<Target> targets;
  private final Map<Path, Route> routes;
  private final @Nullable StagedPath fallback;
  private final TransferOptions options;
  private final AtomicInteger next = new AtomicInteger();
  private final Crew crew = new Crew("load", "gantry-reader-");
  private final Account account = new Account();

  /// @param fallback where a file goes that cuFile refuses in mid-way, or null where that is an
  ///     error
  Transfer(
      ReadPlan plan,
      List<Slab> slabs,
      Map<Path, Route> routes,
      @Nullable StagedPath fallback,
      TransferOptions options) {
    this.reads = plan.reads();
    this.targets = slabs.stream().map(Target::of).toList();
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
        () -> options.progress().onProgress(account.bytes(), total));
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    return account.report(routes.values().stream().map(Route::report).toList(), elapsed);
  }

  /// One reader's work: takes the next read until there is none, or somebody failed.
  private void readAll() {
    try (Lanes lanes = new Lanes(fallback, account)) {
      readAll(lanes);
    } catch (RuntimeException | Error e) {
      crew.fail(e);
    }
  }

  /// A failure is told before the lanes are closed, which may take a while.
  private void readAll(Lanes lanes) {
    try {
      for (Read read = takeNext(); read != null; read = takeNext()) {
        lanes.read(route(read), read, targets.get(read.slab()));
      }
      if (!crew.hasFailed()) {
        lanes.drain();
      }
    } catch (RuntimeException | Error e) {
      crew.fail(e);
    }
  }

  private @Nullable Read takeNext() {
    if (!crew.goesOn(options.cancellation())) {
      return null;
    }
    int index = next.getAndIncrement();
    return index < reads.size() ? reads.get(index) : null;
  }

  private Route route(Read read) {
    Route route = routes.get(read.file());
    if (route == null) {
      throw new IllegalStateException("no route to " + read.file());
    }
    return route;
  }
}
