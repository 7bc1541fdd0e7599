// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Location;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// Does a plan's reads with several reader threads. For one use, by one thread.
///
/// The first failure, or a cancellation, stops all readers. [#run] returns or throws only when all of
/// them have ended and nothing is running any more, so that the caller can free the slabs.
final class PlannedTransfer {
  private final ReadPlan plan;
  private final List<Target> targets;
  private final Map<Location, OpenFile> files;
  private final @Nullable StagedTransport staged;
  private final TransferOptions options;
  private final WorkerThreads workers;

  /// A reader that finds no staging buffers returns its read and waits. The last one at least goes on
  /// waiting until another takes that read, or it gets buffers.
  private final WorkQueue<Read> reads;

  private final TransferCounter counter;

  /// @param files all files of the plan
  /// @param staged null if nothing is staged
  PlannedTransfer(
      ReadPlan plan,
      List<Slab> slabs,
      Map<Location, OpenFile> files,
      @Nullable StagedTransport staged,
      TransferOptions options,
      SessionCounters session) {
    this.plan = plan;
    this.targets = slabs.stream().map(Target::of).toList();
    this.files = files;
    this.staged = staged;
    this.options = options;
    this.counter = new TransferCounter(session);
    this.workers = new WorkerThreads("load", "gantry-reader-", options.cancellation());
    this.reads = new WorkQueue<>(workers, plan.reads());
    workers.whenFailed(this::endWaiting);
  }

  TransferReport run(int threads) {
    long start = System.nanoTime();
    long total = plan.readBytes();
    int readers = Math.min(threads, reads.size());
    workers.work(
        readers,
        () -> readAll(requestsAtOnce(readers), reads.size() / readers),
        () -> options.progress().onProgress(counter.bytes(), total));
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    return counter.report(
        files.values().stream().map(file -> file.transport().report()).toList(), elapsed);
  }

  /// Each reader's share of the requests that suit the files.
  private int requestsAtOnce(int readers) {
    int most = 1;
    for (OpenFile file : files.values()) {
      most = Math.max(most, file.source().requestsAtOnce());
    }
    return Math.ceilDiv(most, Math.max(1, readers));
  }

  /// The work of one thread.
  private void readAll(int requestsAtOnce, int depth) {
    CuFileReader cuFile = new CuFileReader(options.cuFileRule(), depth, workers::mayContinue);
    try (TransportReader reader = new TransportReader(staged, counter, requestsAtOnce, cuFile)) {
      readAll(reader);
    } catch (RuntimeException | Error e) {
      workers.fail(e);
    }
  }

  /// Reports a failure before the reader is closed, which may take a while.
  private void readAll(TransportReader reader) {
    try {
      for (Read read = reads.take(); read != null; read = reads.take()) {
        OpenFile file = Objects.requireNonNull(files.get(read.file()));
        if (reader.read(file, read, targets.get(read.slab()))) {
          reader.giveWay();
        } else {
          reads.putBack(read);
          reader.awaitBuffers(reads::hasMore);
        }
      }
      wakeWaiting();
      if (!workers.hasFailed()) {
        reader.drain();
      }
    } catch (RuntimeException | Error e) {
      workers.fail(e);
    }
  }

  private void endWaiting() {
    wakeWaiting();
    files
        .values()
        .forEach(file -> {
          file.source().endReads();
          file.transport().wake();
        });
  }

  private void wakeWaiting() {
    if (staged != null) {
      staged.buffers().wake();
    }
  }
}
