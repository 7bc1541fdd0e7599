// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.batch.BatchPlan;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.mapped.Gathering;
import dev.gantry.core.internal.mapped.KeptFiles;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.ReaderGrowth;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/// Does reads that are not known in advance, such as those of a ring; [PlannedTransfer] does the
/// reads of a load, which are known. Opens each file when it is first read, and keeps the most
/// recently used files open.
///
/// Thread-safe, except that [#close] may run only after every reader is closed.
public final class OnDemandTransfer implements AutoCloseable {
  /// The least number of files that stay open, however few descriptors the process may have.
  private static final int FEWEST_FILES = 8;

  private static final int MAX_FILES = 16_384;

  private final long start = System.nanoTime();
  private final TransferCounter counter;
  private final OpenFiles files;
  private final @Nullable StagedTransport staged;
  private final RemoteReads remote;
  private final @Nullable FetchedFiles fetched;
  private final int threads;

  /// Cancelled by [#endReads], which ends the opening of remote files.
  private final Cancellation ended = new Cancellation();

  /// @param opened called with each file that is opened, or opened again; throws to refuse it
  /// @param mostDescriptors the most descriptors that the process may have
  OnDemandTransfer(
      FileOpener opener,
      KeptFiles mapped,
      Device device,
      TransferOptions options,
      BiConsumer<Location, Object> opened,
      long mostDescriptors,
      SessionCounters session) {
    TransferOptions own = options.withCancellation(ended);
    this.files =
        new OpenFiles(
            file -> opener.open(file, device, own, opened),
            file -> opener.reopen(file, device, options),
            mostFiles(mostDescriptors));
    this.threads = ReaderRule.threads(device, options, false);
    this.staged = staging(device, options, threads);
    this.fetched = fetched(mapped, device, options);
    this.counter = new TransferCounter(session);
    this.remote = new RemoteReads(staged, counter, null);
  }

  /// The most files to keep open: they use a quarter of the descriptors that this process may have, two for each file.
  private static int mostFiles(long mostDescriptors) {
    return Math.clamp(mostDescriptors / 8, FEWEST_FILES, MAX_FILES);
  }

  /// Makes a pool of buffers for these readers only. Loads use another pool, because a ring keeps
  /// its buffers for a long time and loads would wait for them.
  ///
  /// @return null if nothing is staged
  static @Nullable StagedTransport staging(Device device, TransferOptions options, int threads) {
    if (!ReaderRule.stages(options.transport()) || !(device instanceof Device.Cuda cuda)) {
      return null;
    }
    CudaContext context = CudaContext.of(cuda);
    StagingPool pool = new StagingPool(context, threads, Long.MAX_VALUE);
    return new StagedTransport(
        context, pool.share(), ReaderRule.ownBufferBytes(options), true, null, null);
  }

  private static @Nullable FetchedFiles fetched(
      KeptFiles mapped, Device device, TransferOptions options) {
    boolean allowed =
        options.transport() == null && options.cachePolicy() == CachePolicy.BY_RESIDENCY;
    return switch (device) {
      case Device.Cuda cuda ->
          ReaderRule.mayFetch(device, options)
              ? new FetchedFiles(
                  mapped, CudaContext.of(cuda), options.transport() == Transport.MAPPED)
              : null;
      case Device.Host _ -> allowed ? new FetchedFiles(mapped, null, false) : null;
    };
  }

  /// The number of readers to open: the number in the options, or else the number that
  /// [ReaderRule] chooses.
  public int threads() {
    return threads;
  }

  /// Whether the next batch is likely to be gathered without reads.
  public boolean isReadyToGather() {
    return fetched != null && fetched.isReady();
  }

  /// Prepares to gather a batch without reads, by a kernel or by the CPU, if that is possible and
  /// faster than reading; empty otherwise. The caller closes the gathering when the batch is
  /// complete.
  ///
  /// @throws dev.gantry.core.TransferException if a file cannot be opened, or is too short
  /// @throws dev.gantry.core.DeviceUnavailableException if [Transport#MAPPED] was asked for and cannot
  ///     serve
  public Optional<Gathering> gathering(BatchPlan<?> plan) {
    return fetched == null || (plan.reads().isEmpty() && plan.gathers().count() == 0)
        ? Optional.empty()
        : fetched.gathering(plan, files, counter);
  }

  /// Opens a reader. At most [#threads] readers may be open at once.
  public Reader openReader() {
    return new Reader();
  }

  /// Reports the reads so far, and the files that are open now.
  public TransferReport report() {
    return counter.report(
        threads, List.copyOf(files.reports()), Duration.ofNanos(System.nanoTime() - start));
  }

  /// Ends running reads of remote files and the opening of remote files, so that readers do not
  /// wait for a slow server.
  public void endReads() {
    ended.cancel();
    files.endReads();
  }

  /// Waits until the reads of remote files that readers started have ended.
  public void awaitRemote() {
    remote.awaitEnds();
  }

  /// Ends the reads of remote files, and closes the files.
  @Override
  public void close() {
    try (files;
        remote) {}
  }

  /// Reads for one thread.
  public final class Reader implements AutoCloseable {
    private final TransportReader reader =
        new TransportReader(staged, counter, null, ReaderGrowth.NONE);

    private Reader() {}

    /// Begins a read into `target`; if the file is remote, returns without waiting for the bytes.
    /// Unless this throws, either `arrived` or `failed` is run once, on any thread. The bytes may
    /// not be in device memory yet when `arrived` is run: see [Target#stream].
    ///
    /// @param arrived must not throw
    /// @param failed must not throw
    /// @throws dev.gantry.core.TransferException if the file cannot be opened or read, or ends
    ///     before the required bytes
    /// @throws dev.gantry.core.DeviceUnavailableException if the only transport asked for cannot
    ///     serve
    public void read(Read read, Target target, Runnable arrived, Consumer<Throwable> failed) {
      OpenFiles.Use use = files.use(read.file());
      boolean remains = Cleanup.orUndo(() -> begin(use, read, target, arrived, failed), use::close);
      if (!remains) {
        use.close();
        arrived.run();
      }
    }

    /// @return whether the read goes on after this returns, and then closes its use of the file by
    ///     itself
    private boolean begin(
        OpenFiles.Use use, Read read, Target target, Runnable arrived, Consumer<Throwable> failed) {
      SourceFile source = use.file().source();
      if (ended.isCancelled()) {
        // If the file was opened while [#endReads] ran, that call may not have ended this file's
        // reads.
        source.endReads();
      }
      source.checkHolds(read.fileOffset() + read.required());
      if (source.isLocal()) {
        if (!reader.read(use.file(), read, target)) {
          throw new IllegalStateException("more than " + threads + " readers at once");
        }
        return false;
      }
      remote.start(
          use.file(),
          read,
          target,
          () -> {
            use.close();
            arrived.run();
          },
          reason -> {
            Cleanup.after(reason, OpenFiles.Use::close, use);
            failed.accept(reason);
          });
      return true;
    }

    /// Waits for running copies, even after a failure, and gives the buffers back.
    @Override
    public void close() {
      reader.close();
    }
  }
}
