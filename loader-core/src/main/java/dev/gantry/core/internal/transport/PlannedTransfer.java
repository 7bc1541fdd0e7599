// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.Target;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.threads.ReaderGrowth;
import dev.gantry.core.internal.threads.WorkQueue;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;

/// Does reads that are known in advance, with several reader threads. One thread uses an instance
/// once.
///
/// The first failure, or a cancellation, stops all readers. [#run] returns or throws only after
/// all readers, remote reads and copies have ended, so that the caller can free the memory then.
public final class PlannedTransfer {
  /// One read, and the memory that it fills.
  ///
  /// @param arrived run on any thread when all bytes of the read have arrived, even if other reads fail
  public record Task(Read read, Target target, Runnable arrived) {}

  private final Map<Location, OpenFile> files;

  /// The staging of each device. The readers are distributed over them round-robin.
  private final List<StagedTransport> staged;

  private final AtomicInteger started = new AtomicInteger();
  private final ReaderGrowth growth;
  private final TransferOptions options;
  private final WorkerThreads workers;

  /// The reads that no reader has taken. A reader that finds no staging buffers returns its read
  /// and waits for buffers. It stops waiting when no reads are left.
  private final WorkQueue<Task> reads;

  private final long totalBytes;

  private final TransferCounter counter;
  private final RemoteReads remote;

  /// The tasks whose `arrived` is run after the copies of remote reads to a device are done.
  private final Queue<Task> copied = new ConcurrentLinkedQueue<>();

  /// @param files the files of all tasks
  /// @param staged the staging of each device that is read to; empty if nothing is staged
  /// @param growth decides how many readers read
  PlannedTransfer(
      List<Task> tasks,
      Map<Location, OpenFile> files,
      List<StagedTransport> staged,
      ReaderGrowth growth,
      TransferOptions options,
      SessionCounters session) {
    this.files = files;
    this.staged = staged;
    this.growth = growth;
    this.options = options;
    this.totalBytes = tasks.stream().mapToLong(task -> task.read().length()).sum();
    this.counter = new TransferCounter(session);
    this.remote =
        new RemoteReads(staged.isEmpty() ? null : staged.getFirst(), counter, options.checksums());
    this.workers =
        new WorkerThreads(
            "load",
            () -> WorkerThreads.names(files.keySet()),
            "gantry-reader-",
            options.cancellation());
    this.reads = new WorkQueue<>(workers, tasks);
    workers.whenFailed(this::endWaiting);
  }

  TransferReport run() {
    long start = System.nanoTime();
    try {
      workers.work(
          Math.min(growth.most(), reads.size()),
          this::readAll,
          () -> options.progress().onProgress(counter.bytes(), totalBytes));
    } finally {
      remote.close();
      copied.forEach(task -> task.arrived().run());
    }
    Duration elapsed = Duration.ofNanos(System.nanoTime() - start);
    return counter.report(
        Math.min(growth.joined(), reads.size()),
        files.values().stream().map(file -> file.transport().report()).toList(),
        elapsed);
  }

  /// Does the work of one reader thread.
  private void readAll() {
    int number = started.getAndIncrement();
    if (!growth.join(number)) {
      return;
    }
    StagedTransport own = staged.isEmpty() ? null : staged.get(number % staged.size());
    List<Task> done = new ArrayList<>();
    try (TransportReader reader = new TransportReader(own, counter, options.checksums(), growth)) {
      readAll(reader, done);
    } catch (RuntimeException | Error e) {
      workers.fail(e);
      return;
    }
    // When the reader is closed, all its copies are done.
    done.forEach(task -> task.arrived().run());
  }

  /// Does reads until none is left. A failure is reported to the other readers at once, before
  /// this reader is closed, since closing it may take a while.
  ///
  /// @param done receives the tasks of local files; their bytes have arrived when the reader is
  ///     closed
  private void readAll(TransportReader reader, List<Task> done) {
    try {
      for (Task task = reads.take(); task != null; task = reads.take()) {
        OpenFile file = Objects.requireNonNull(files.get(task.read().file()));
        if (!file.source().isLocal()) {
          start(file, task);
        } else if (reader.read(file, task.read(), task.target())) {
          done.add(task);
          reader.giveWay();
        } else {
          reads.putBack(task);
          reader.awaitBuffers(reads::hasMore);
        }
      }
      wakeWaiting();
      if (!workers.hasFailed()) {
        reader.drain();
        remote.drain();
      }
    } catch (RuntimeException | Error e) {
      if (e instanceof TransferException failed && failed.failure() instanceof Failure.Cuda) {
        // The device does not report which copy failed, so no task is told that its bytes have
        // arrived.
        done.clear();
        copied.clear();
      }
      workers.fail(e);
    }
  }

  private void start(OpenFile file, Task task) {
    remote.start(
        file,
        task.read(),
        task.target(),
        () -> {
          if (staged.isEmpty()) {
            task.arrived().run();
          } else {
            copied.add(task);
          }
        },
        workers::fail);
  }

  private void endWaiting() {
    wakeWaiting();
    files.values().forEach(file -> file.source().endReads());
  }

  private void wakeWaiting() {
    growth.end();
    staged.forEach(each -> each.buffers().wake());
  }
}
