package dev.gantry.core.internal.transport;

import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import java.time.Duration;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Reads that are asked for one by one, for as long as somebody asks: the counterpart of a plan
/// that is known in advance. Each file is opened when it is first read, takes its path by evidence,
/// and stays open while it is among the last used, as many as the process has descriptors for.
///
/// Thread-safe; [#close] only when every reader is closed.
public final class StandingTransfer implements AutoCloseable {
  private final long start = System.nanoTime();
  private final TransferCounter counter = new TransferCounter();
  private final RouteCache routes;
  private final @Nullable StagedPath staged;
  private final boolean fallsBack;
  private final int threads;

  /// @param staged the one that routes name, whose pool has a pair for each reader and is closed
  ///     with this; or null where nothing is staged
  /// @param fallsBack whether a file is staged that cuFile refuses in mid-way, which is an error
  ///     otherwise
  /// @param mostFiles that are open at once without being read
  StandingTransfer(
      Function<Location, Route> opener,
      @Nullable StagedPath staged,
      boolean fallsBack,
      int threads,
      int mostFiles) {
    this.routes = new RouteCache(opener, mostFiles);
    this.staged = staged;
    this.fallsBack = fallsBack;
    this.threads = threads;
  }

  /// The readers to open: as asked for, or what suits the path and the machine.
  public int threads() {
    return threads;
  }

  /// The most memory of the CPU that the readers take for themselves, in bytes.
  public long stagingBytes() {
    return staged == null ? 0 : Math.multiplyExact(2L * threads, staged.bufferBytes());
  }

  /// At most [#threads] may be open at once.
  public Reader openReader() {
    return new Reader();
  }

  /// What was carried until now. Its files are those that are open at this moment.
  public TransferReport report() {
    return counter.report(
        List.copyOf(routes.reports()), Duration.ofNanos(System.nanoTime() - start));
  }

  /// Closes the files, and frees what was staged in.
  @Override
  public void close() {
    List<Runnable> actions =
        staged == null
            ? List.of(routes::close)
            : List.of(routes::close, staged.buffers().pool()::close);
    Cleanup.runAll(actions);
  }

  /// What one thread reads with.
  public final class Reader implements AutoCloseable {
    private final Lanes lanes = new Lanes(staged, fallsBack, counter, 1);

    private Reader() {}

    /// Brings `read`'s bytes into `target`. They may still be on their way when this returns: see
    /// [Target#ordered].
    ///
    /// @throws dev.gantry.core.TransferException if the file cannot be opened or read, or ends
    ///     before what is required
    /// @throws dev.gantry.core.DeviceUnavailableException if the only path asked for cannot serve
    public void read(Read read, Target target) {
      try (RouteCache.Use use = routes.use(read.file())) {
        use.route().file().checkHolds(read.fileOffset() + read.required());
        if (!lanes.read(use.route(), read, target)) {
          throw new IllegalStateException("more than " + threads + " readers at once");
        }
        lanes.awaitRemote();
      }
    }

    /// Waits for copies under way, whatever became of them, and frees the buffers.
    @Override
    public void close() {
      lanes.close();
    }
  }
}
