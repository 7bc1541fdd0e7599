// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.commit;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.commit.FileCommit.WriteTask;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.events.EventKind;
import dev.gantry.core.internal.events.TimedEvent;
import dev.gantry.core.internal.events.TransferCounter;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CpuSlab;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.plan.PlanLimits;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.threads.WorkQueue;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransportOracle;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Writes files. All files are on the disk before the first is renamed to its target. May be used
/// once, by one thread.
public final class WriteOperation {
  /// Files stay open until all are renamed, unless they are more than the process's descriptors
  /// divided by this number. A file takes two descriptors.
  private static final int DESCRIPTORS_SHARE = 8;

  private final TransferEngine engine;
  private final WriteOptions options;
  private final Folders folders;
  private final List<FileCommit> files;
  private final Set<Device.Cuda> devices;
  private final Map<Location, SourceFile> sources = new HashMap<>();
  private final WorkerThreads workers;
  private final WorkQueue<WriteTask> tasks;
  private final TransferCounter counter;

  /// The size in bytes of each of a writer's two buffers, if these are ordinary host memory.
  private final long bufferBytes;

  /// The pinned buffers to which device memory is copied; null if all bytes are on the host.
  private final StagingPool.@Nullable Share staging;

  public WriteOperation(TransferEngine engine, List<NewFile> files, WriteOptions options) {
    this.engine = engine;
    this.options = options;
    this.counter = new TransferCounter(engine.counters());
    this.folders = new Folders(engine.calls());
    requireUniqueNames(files);
    boolean held = files.size() <= engine.calls().mostDescriptors() / DESCRIPTORS_SHARE;
    this.files = files.stream().map(file -> new FileCommit(engine, file, options, held)).toList();
    bufferBytes = bufferBytes(files.stream(), options);
    devices =
        files.stream()
            .flatMap(FileCommit::devices)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    // The buffers are pinned for every CUDA context, so the buffers of one device serve all
    // devices.
    staging = devices.isEmpty() ? null : engine.stagingPool(devices.iterator().next()).share();
    List<Path> targets = files.stream().map(NewFile::file).toList();
    workers =
        new WorkerThreads(
            "save", () -> WorkerThreads.names(targets), "gantry-writer-", options.cancellation());
    workers.whenFailed(this::wakeWaiting);
    tasks = new WorkQueue<>(workers, this.files.stream().flatMap(FileCommit::tasks).toList());
  }

  private static void requireUniqueNames(List<NewFile> files) {
    Set<Path> names = new HashSet<>();
    for (NewFile file : files) {
      if (!names.add(file.file().toAbsolutePath().normalize())) {
        throw new MisuseException("the same file would be written twice: " + file.file());
      }
    }
  }

  /// Returns the size of a buffer of ordinary host memory, which is not more than the longest
  /// write needs.
  private static long bufferBytes(Stream<NewFile> files, WriteOptions options) {
    long block = PlanLimits.BLOCK_BYTES;
    long longest = files.mapToLong(NewFile::size).max().orElse(0);
    return Math.min(options.requestBytes(), Math.ceilDiv(longest, block) * block);
  }

  public WriteReport run() {
    if (options.transport() == Transport.HOST && !devices.isEmpty()) {
      throw TransportOracle.unavailable(Transport.HOST, "the bytes are in memory of " + devices);
    }
    TimedEvent event = TimedEvent.begun(EventKind.SAVE);
    long start = System.nanoTime();
    try {
      openSources();
      folders().forEach(folder -> Leftovers.remove(engine.calls(), folder));
      // The copies use a stream of their own, so work that is queued on other streams must end
      // first.
      devices.forEach(device -> CudaContext.of(device).synchronize());
      long total = files.stream().mapToLong(FileCommit::size).sum();
      workers.work(
          writers(), this::writeAll, () -> options.progress().onProgress(counter.bytes(), total));
      // An empty file has no last write that would finish it.
      files.stream().filter(file -> file.size() == 0).forEach(FileCommit::finish);
      workers.throwIfCancelled();
      files.forEach(file -> file.rename(folders));
      folders().forEach(folders::sync);
    } catch (RuntimeException | Error failure) {
      files.forEach(file -> file.abandon(folders, failure));
      engine.counters().addSave(false);
      event.done(first(), files.size(), 0, 0, 0, failure);
      throw failure;
    } finally {
      Cleanup.forEach(sources.values(), SourceFile::close);
    }
    engine.counters().addSave(true);
    engine.counters().addFiles(files.size());
    event.done(first(), files.size(), counter.bytes(), counter.directBytes(), tasks.size(), "");
    return new WriteReport(
        counter.bytesByTransport(),
        counter.directBytes(),
        tasks.size(),
        files.stream().map(FileCommit::report).toList(),
        Duration.ofNanos(System.nanoTime() - start));
  }

  private Stream<Path> folders() {
    return files.stream().map(file -> Folders.parent(file.file().file())).distinct();
  }

  private @Nullable Path first() {
    return files.isEmpty() ? null : files.getFirst().file().file();
  }

  private void openSources() {
    for (FileCommit file : files) {
      for (Source part : file.file().parts()) {
        if (part instanceof Source.FilePart(var extent)) {
          SourceFile source = sources.get(extent.file());
          if (source == null) {
            source = engine.openFile(extent.file(), CachePolicy.BUFFERED);
            sources.put(extent.file(), source);
          }
          source.checkHolds(extent.end());
        }
      }
    }
  }

  /// Returns how many threads write: the number in the options, or fewer if there is too little
  /// memory for all their buffers.
  private int writers() {
    int writers = Math.min(options.writers(), tasks.size());
    if (writers == 0) {
      return 0;
    }
    Device device = staging == null ? Device.HOST : devices.iterator().next();
    MemoryUse each =
        staging == null
            ? MemoryUse.on(device, 2 * bufferBytes)
            : new MemoryUse(0, 2 * options.requestBytes(), 0);
    Admission.require(each, device, "save by smaller requests (optRequestBytes)");
    return Admission.countOf(writers, each, device);
  }

  private void writeAll() {
    for (var writer = writer(); writer != null; writer = writer()) {
      try {
        write(writer);
      } catch (RuntimeException | Error e) {
        workers.fail(e);
      } finally {
        writer.close();
      }
    }
  }

  /// Does writes until none is left, or until this save must give its buffers to another load or
  /// save that has fewer.
  private void write(DoubleBufferedWriter writer) {
    for (WriteTask task = tasks.take(); task != null; task = givesWay() ? null : tasks.take()) {
      writer.put(task);
    }
    if (!tasks.hasMore()) {
      wakeWaiting();
    }
    if (!workers.hasFailed()) {
      writer.drain();
    }
  }

  private boolean givesWay() {
    return staging != null && staging.shouldGiveOneBack();
  }

  private void wakeWaiting() {
    if (staging != null) {
      staging.wake();
    }
  }

  /// Takes two buffers. Returns null if nothing is left to write.
  private @Nullable DoubleBufferedWriter writer() {
    if (!tasks.hasMore()) {
      return null;
    }
    if (staging != null) {
      return staging.take(
          options.requestBytes(),
          tasks::hasMore,
          pair ->
              writer(
                  pair.first(),
                  pair.second(),
                  () -> staging.giveBack(pair),
                  () -> staging.abandon(pair)));
    }
    return Cleanup.orUndo(
        () -> HostSlab.allocate(bufferBytes),
        first ->
            Cleanup.orUndo(
                () -> HostSlab.allocate(bufferBytes),
                second ->
                    writer(first, second, () -> Slab.releaseAll(List.of(first, second)), () -> {}),
                Slab::release),
        Slab::release);
  }

  private DoubleBufferedWriter writer(
      CpuSlab first, CpuSlab second, Runnable giveBack, Runnable abandon) {
    return new DoubleBufferedWriter(
        new DoubleBufferedWriter.Buffers(first, second, giveBack, abandon),
        options.checksums(),
        sources,
        counter);
  }
}
