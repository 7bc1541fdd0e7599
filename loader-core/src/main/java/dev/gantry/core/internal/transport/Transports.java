package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.memory.StagingPool;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A session's paths: what is dear to make is made once and kept, and each file gets its path by
/// evidence.
///
/// For a CUDA device, bytes in the page cache are always staged: that is faster than any way past
/// the cache. Cold bytes go by `gds` where libcufile takes the file and direct I/O is there, else
/// they are staged by direct I/O into pinned memory; `compat` only serves on request, since it
/// copies through the CPU as staging does, and does so more slowly. Thread-safe.
public final class Transports implements AutoCloseable {
  /// Readers that stage at once, over all of a session's loads and saves.
  private static final int MOST_STAGING_PAIRS = 32;

  /// Room behind the largest read in a reader's buffer: a batch's small fields go with its large
  /// ones, and do not take a buffer of their own while the other is still being copied from.
  private static final long SMALL_READS_BYTES = 64 << 10;

  /// Files that a standing transfer keeps open, whatever the process may have.
  private static final int FEWEST_FILES = 8;

  private static final int MOST_FILES = 16_384;

  private final FileCalls calls;
  private final Stores stores;
  private final Map<Device.Cuda, StagingPool> pools = new ConcurrentHashMap<>();
  private final CuFileSession cuFile = new CuFileSession();

  /// Shared by all who use what [#close] takes away, which waits for them.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();

  private volatile boolean closed;

  public Transports(FileCalls calls) {
    this.calls = calls;
    this.stores = new Stores(calls);
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  public SourceFile openFile(Location file, CachePolicy policy) {
    checkOpen();
    return stores.open(file, policy);
  }

  /// The kernel's file calls, as this session makes them.
  public FileCalls calls() {
    return calls;
  }

  /// What this session knows of cuFile.
  public CuFileSession cuFile() {
    return cuFile;
  }

  /// Reads all that `plan` says into slabs of `device`.
  ///
  /// @param slabs allocates the plan's slabs; asked once, after the files were found to be as long
  ///     as the plan needs
  public TransferReport transfer(
      ReadPlan plan, Device device, Supplier<List<Slab>> slabs, TransferOptions options) {
    return using(() -> transferOpen(plan, device, slabs, options));
  }

  private TransferReport transferOpen(
      ReadPlan plan, Device device, Supplier<List<Slab>> slabs, TransferOptions options) {
    Map<Location, SourceFile> files = new LinkedHashMap<>();
    Map<Location, Route> routes = new LinkedHashMap<>();
    List<Slab> targets = List.of();
    try {
      openAll(plan, options, files);
      targets = slabs.get();
      StagedPath staged = stagedPath(device, options);
      files.forEach((path, file) -> routes.put(path, route(file, device, staged, options)));
      boolean inMemory = files.values().stream().anyMatch(SourceFile::inMemory);
      return new Transfer(plan, targets, routes, staged, options)
          .run(threads(device, options, inMemory));
    } finally {
      List<Slab> filled = targets;
      List<Runnable> actions = new ArrayList<>(List.of(() -> cuFile.deregister(filled)));
      routes.values().forEach(route -> actions.add(route::close));
      files.values().forEach(file -> actions.add(file::close));
      Cleanup.runAll(actions);
    }
  }

  private void checkOpen() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
  }

  /// Does `work`, which may use what [#close] takes away.
  public <T> T using(Supplier<T> work) {
    use.readLock().lock();
    try {
      checkOpen();
      return work.get();
    } finally {
      use.readLock().unlock();
    }
  }

  private void openAll(ReadPlan plan, TransferOptions options, Map<Location, SourceFile> files) {
    for (ReadPlan.Read read : plan.reads()) {
      SourceFile file = files.get(read.file());
      if (file == null) {
        file = openFile(read.file(), options.cachePolicy());
        files.put(read.file(), file);
      }
      file.checkHolds(read.fileOffset() + read.required());
    }
  }

  /// Readers that take their time: files are opened when they are asked for, and memory is written
  /// when it is free.
  ///
  /// Not to be used after [#close]: whoever closes this session closes it first.
  ///
  /// @param opened hears of each file that is opened, or opened again, and may refuse it by throwing
  public StandingTransfer standingTransfer(
      Device device, TransferOptions options, BiConsumer<Location, Object> opened) {
    checkOpen();
    int threads = threads(device, options, false);
    StagedPath staged = standingPath(device, options, threads);
    boolean stages = options.onlyTransport().isEmpty() || options.transport() == Transport.STAGED;
    return new StandingTransfer(
        file -> openRoute(file, device, staged, options, opened),
        stages ? staged : null,
        options.onlyTransport().isEmpty(),
        threads,
        mostFiles(calls.mostDescriptors()));
  }

  /// A quarter of the descriptors that this process may have, two a file: others have files, too.
  private static int mostFiles(long mostDescriptors) {
    return Math.clamp(mostDescriptors / 8, FEWEST_FILES, MOST_FILES);
  }

  /// With buffers of its own: who keeps the session's for long would leave others waiting.
  private static @Nullable StagedPath standingPath(
      Device device, TransferOptions options, int threads) {
    return switch (device) {
      case Device.Host _ -> null;
      case Device.Cuda cuda -> {
        CudaContext context = CudaContext.of(cuda);
        StagingPool pool = new StagingPool(context, threads);
        long bufferBytes = options.limits().requestBytes() + SMALL_READS_BYTES;
        yield new StagedPath(context, pool.share(), bufferBytes, true);
      }
    };
  }

  private Route openRoute(
      Location path,
      Device device,
      @Nullable StagedPath staged,
      TransferOptions options,
      BiConsumer<Location, Object> opened) {
    SourceFile file = openFile(path, options.cachePolicy());
    boolean complete = false;
    try {
      opened.accept(path, file.identity());
      Route route = route(file, device, staged, options);
      complete = true;
      return route;
    } finally {
      if (!complete) {
        file.close();
      }
    }
  }

  private @Nullable StagedPath stagedPath(Device device, TransferOptions options) {
    return switch (device) {
      case Device.Host _ -> null;
      case Device.Cuda cuda -> {
        long bufferBytes = options.limits().requestBytes();
        StagingPool.Share buffers = stagingPool(cuda).share();
        yield new StagedPath(CudaContext.of(cuda), buffers, bufferBytes, false);
      }
    };
  }

  /// Frees the pinned buffers that no transfer uses now.
  public void freeIdle() {
    pools.values().forEach(StagingPool::freeIdle);
  }

  /// The pinned buffers for a device's copies.
  public StagingPool stagingPool(Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    return pools.computeIfAbsent(device, _ -> new StagingPool(context, MOST_STAGING_PAIRS));
  }

  private Route route(
      SourceFile file, Device device, @Nullable StagedPath staged, TransferOptions options) {
    Transport only = options.transport();
    if (staged == null) {
      if (only != null && only != Transport.HOST) {
        throw unavailable(only, "it ends in memory of a CUDA device, not of " + device);
      }
      return new Route(file, new HostPath(), file.descriptors().directAbsence());
    }
    return switch (only) {
      case null -> new Route(file, staged, () -> byEvidence(file, staged));
      case HOST -> throw unavailable(only, "it ends in memory of the CPU, not of " + device);
      case STAGED -> new Route(file, staged, "asked for");
      case GDS, COMPAT -> {
        CuFilePath path =
            switch (toCuFile(file, staged, only)) {
              case Availability.Present<CuFilePath>(CuFilePath present) -> present;
              case Availability.Absent<CuFilePath>(String reason) ->
                  throw unavailable(only, file.file() + ": " + reason);
            };
        yield new Route(file, path, "asked for");
      }
    };
  }

  private Route.Cold byEvidence(SourceFile file, StagedPath staged) {
    return switch (toCuFile(file, staged, Transport.GDS)) {
      case Availability.Present<CuFilePath>(CuFilePath gds) -> new Route.Cold(gds, "");
      case Availability.Absent<CuFilePath>(String reason) ->
          new Route.Cold(staged, "no gds: " + reason);
    };
  }

  private Availability<CuFilePath> toCuFile(SourceFile file, StagedPath staged, Transport kind) {
    return cuFile.pathTo(file.file(), file.descriptors(), staged.context(), kind);
  }

  /// The error for a path that was asked for by name and cannot serve.
  public static DeviceUnavailableException unavailable(Transport path, String reason) {
    return new DeviceUnavailableException("path " + path + " cannot serve: " + reason);
  }

  /// The readers to start: as asked for, or what the path and the machine can use.
  ///
  /// @param inMemory whether files are kept in memory by their file system
  private static int threads(Device device, TransferOptions options, boolean inMemory) {
    if (options.threads() > 0) {
      return options.threads();
    }
    int cores = Runtime.getRuntime().availableProcessors();
    return switch (device) {
      // More readers than cores keep a disk's queue filled while the others copy.
      case Device.Host _ -> Math.clamp(cores * 2L, 2, 8);
      // Eight readers fill a PCIe 5 x16 link from the page cache of a disk's file system, where
      // pages are large; twelve from tmpfs, where each of 4 KiB is looked up for itself. Measured
      // on an H200 host, by a ring in C: 53 GB/s, and 53 with twelve, 49 with eight, 27 with four.
      case Device.Cuda _ -> Math.clamp(cores, 2, inMemory ? 12 : 8);
    };
  }

  /// What would become of a file whose bytes are to go to `device`.
  public FileDiagnosis diagnose(Location path, Device device) {
    return using(() -> diagnoseOpen(path, device));
  }

  private FileDiagnosis diagnoseOpen(Location path, Device device) {
    TransferOptions options = TransferOptions.defaults();
    SourceFile file = openFile(path, options.cachePolicy());
    Route route = null;
    try {
      route = route(file, device, stagedPath(device, options), options);
      return new FileDiagnosis(
          route.prediction(),
          file.descriptors().directAbsence(),
          file.size(),
          file.residentBytes());
    } finally {
      if (route != null) {
        route.close();
      }
      file.close();
    }
  }

  /// Waits for the transfers under way; then frees staging buffers and closes the cuFile driver.
  ///
  /// @throws MisuseException if a transfer's own listener calls it, which could only wait for itself
  @Override
  public void close() {
    if (use.getReadHoldCount() > 0) {
      throw new MisuseException("a session cannot be closed by a load of its own");
    }
    use.writeLock().lock();
    try {
      if (closed) {
        return;
      }
      closed = true;
      List<Runnable> actions = new ArrayList<>();
      pools.values().forEach(pool -> actions.add(pool::close));
      actions.addAll(List.of(cuFile::close, stores::close));
      Cleanup.runAll(actions);
    } finally {
      use.writeLock().unlock();
    }
  }
}
