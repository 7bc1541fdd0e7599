package dev.gantry.core.internal.commit;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.StagingPool;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.Transports;
import dev.gantry.core.internal.transport.WorkerThreads;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// One write of some files: all of them are on the disk before the first gets its name. For one
/// use, by one thread.
public final class WriteOperation {
  /// A write of a file, by numbers.
  private record Task(FileCommit file, int number) {}

  private final Transports paths;
  private final WriteOptions options;
  private final Folders folders;
  private final List<FileCommit> files;
  private final List<Task> tasks = new ArrayList<>();
  private final Set<Device.Cuda> devices;
  private final Map<Location, SourceFile> sources = new HashMap<>();
  private final AtomicInteger next = new AtomicInteger();
  private final WorkerThreads crew;

  /// Of the buffers that device memory is copied to; null where there is none to copy.
  private final StagingPool.@Nullable Share staging;

  private final Map<Transport, Long> bytesByTransport = new EnumMap<>(Transport.class);
  private final LongAdder done = new LongAdder();
  private final LongAdder directBytes = new LongAdder();

  public WriteOperation(Transports paths, List<NewFile> files, WriteOptions options) {
    this.paths = paths;
    this.options = options;
    this.folders = new Folders(paths.calls());
    checkNames(files);
    this.files = files.stream().map(file -> new FileCommit(paths, file, options)).toList();
    for (FileCommit file : this.files) {
      for (int number = 0; number < file.plan().writes().size(); number++) {
        tasks.add(new Task(file, number));
      }
    }
    devices =
        files.stream()
            .flatMap(WriteOperation::devices)
            .collect(Collectors.toCollection(LinkedHashSet::new));
    // Pinned for every context, so those of one device serve all.
    staging = devices.isEmpty() ? null : paths.stagingPool(devices.iterator().next()).share();
    crew = new WorkerThreads("save", "gantry-writer-", options.cancellation());
    crew.whenFailed(this::wakeWaiting);
  }

  private static void checkNames(List<NewFile> files) {
    Set<Path> names = new HashSet<>();
    for (NewFile file : files) {
      if (!names.add(file.file().toAbsolutePath().normalize())) {
        throw new MisuseException("to be written twice at once: " + file.file());
      }
    }
  }

  static Stream<Device.Cuda> devices(NewFile file) {
    return file.parts().stream()
        .flatMap(part ->
            part instanceof Source.DeviceMemory memory
                ? Stream.of(memory.device())
                : Stream.empty());
  }

  public WriteReport run() {
    if (options.transport() == Transport.HOST && !devices.isEmpty()) {
      throw Transports.unavailable(Transport.HOST, "the bytes are in memory of " + devices);
    }
    long start = System.nanoTime();
    try {
      openSources();
      awaitDevices();
      long total = files.stream().mapToLong(file -> file.plan().size()).sum();
      crew.work(
          Math.min(threads(), tasks.size()),
          this::writeAll,
          () -> options.progress().onProgress(done.sum(), total));
      // Empty files have no write after which they would be finished.
      files.stream().filter(file -> file.plan().writes().isEmpty()).forEach(FileCommit::finish);
      crew.checkpoint();
      files.forEach(file -> file.rename(folders));
      files.stream()
          .map(file -> Folders.parent(file.file().file()))
          .distinct()
          .forEach(folders::sync);
    } catch (RuntimeException | Error failure) {
      files.forEach(file -> file.abandon(folders, failure));
      throw failure;
    } finally {
      sources.values().forEach(SourceFile::close);
    }
    return new WriteReport(
        bytesByTransport,
        directBytes.sum(),
        tasks.size(),
        files.stream().map(FileCommit::report).toList(),
        Duration.ofNanos(System.nanoTime() - start));
  }

  private void openSources() {
    for (FileCommit file : files) {
      for (Source part : file.file().parts()) {
        if (part instanceof Source.FilePart(var extent)) {
          SourceFile source = sources.get(extent.file());
          if (source == null) {
            source = paths.openFile(extent.file(), CachePolicy.BUFFERED);
            sources.put(extent.file(), source);
          }
          if (source.size() < extent.end()) {
            throw new TransferException(
                "open",
                extent.file().toString(),
                new Failure.EndOfFile(extent.end() - source.size()));
          }
        }
      }
    }
  }

  /// The copies that follow are ordered with no stream but their own.
  private void awaitDevices() {
    for (Device.Cuda device : devices) {
      CudaContext.of(device).synchronize();
    }
  }

  private int threads() {
    if (options.threads() > 0) {
      return options.threads();
    }
    // One writer reaches a disk's speed; more take the checksums and the copies meanwhile.
    return Math.clamp(Runtime.getRuntime().availableProcessors(), 2, 4);
  }

  private void writeAll() {
    for (var buffers = buffers(); buffers != null; buffers = buffers()) {
      WriteLane lane = new WriteLane(buffers, options.checksums(), sources, this::account);
      try {
        write(lane);
      } catch (RuntimeException | Error e) {
        crew.fail(e);
      } finally {
        lane.close();
      }
    }
  }

  /// Until nothing is left to write, or another load or save waits for buffers and has fewer.
  private void write(WriteLane lane) {
    for (Task task = takeNext(); task != null; task = givesWay() ? null : takeNext()) {
      lane.put(task.file(), task.number());
    }
    if (!crew.hasFailed()) {
      lane.drain();
    }
  }

  private boolean givesWay() {
    return staging != null && staging.owesOne();
  }

  private void wakeWaiting() {
    if (staging != null) {
      staging.wake();
    }
  }

  private @Nullable Task takeNext() {
    if (!crew.goesOn()) {
      return null;
    }
    int index = next.getAndIncrement();
    if (index < tasks.size()) {
      return tasks.get(index);
    }
    wakeWaiting();
    return null;
  }

  private boolean isWorkLeft() {
    return crew.goesOn() && next.get() < tasks.size();
  }

  /// Null where nothing is left to write.
  private WriteLane.@Nullable Buffers buffers() {
    if (!isWorkLeft()) {
      return null;
    }
    if (staging == null) {
      HostSlab first = HostSlab.allocate(options.requestBytes());
      boolean complete = false;
      try {
        HostSlab second = HostSlab.allocate(options.requestBytes());
        complete = true;
        Runnable release = () -> Slab.releaseAll(List.of(first, second));
        return new WriteLane.Buffers(first, second, release, () -> {});
      } finally {
        if (!complete) {
          first.release();
        }
      }
    }
    StagingPool.Pair pair = staging.take(options.requestBytes(), this::isWorkLeft);
    return pair == null
        ? null
        : new WriteLane.Buffers(
            pair.first(), pair.second(), () -> staging.giveBack(pair), staging::abandon);
  }

  private void account(Transport path, long bytes, boolean direct) {
    synchronized (bytesByTransport) {
      bytesByTransport.merge(path, bytes, Long::sum);
    }
    done.add(bytes);
    if (direct) {
      directBytes.add(bytes);
    }
  }
}
