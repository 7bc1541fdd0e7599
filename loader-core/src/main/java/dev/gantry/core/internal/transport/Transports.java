// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.Metrics.MemoryUse;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.mapped.MappedFiles;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.memory.Room;
import dev.gantry.core.internal.memory.StagingPool;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.sums.KnownSums;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.WritableStore;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Caches a session's expensive resources (the cuFile driver, stores, kept files), and opens files
/// with their transports: see [TransportOracle]. Thread-safe.
public final class Transports implements AutoCloseable {
  /// Threads that stage at once, in all of a session's loads and saves.
  private static final int MOST_STAGING_PAIRS = 32;

  /// Of their buffers. A gigabyte is twice what as many take by default.
  private static final long MOST_STAGING_BYTES = 1L << 30;

  /// Room behind the largest read in a reader's buffer: a batch's small fields share the buffer of a
  /// large one, instead of waiting for the other buffer.
  private static final long SMALL_READS_BYTES = 64 << 10;

  /// Files that an on-demand transfer keeps open, however few descriptors the process may have.
  private static final int FEWEST_FILES = 8;

  private static final int MOST_FILES = 16_384;

  private static final String FEWER_READERS =
      "take fewer readers (optThreads) or smaller requests (optRequestBytes)";

  private final FileCalls calls;
  private final Stores stores;
  private final Map<Device.Cuda, StagingPool> pools = new ConcurrentHashMap<>();
  private final CuFileSession cuFile;
  private final SessionCounters counters = new SessionCounters();
  private final MappedFiles mapped;

  /// Shared by all users of what [#close] frees, which waits for them.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();

  private volatile boolean closed;

  public Transports(FileCalls calls) {
    this(calls, List.of());
  }

  /// @param given stores, which are closed with this
  public Transports(FileCalls calls, List<Store> given) {
    this(calls, given, null);
  }

  /// @param given stores, which are closed with this
  /// @param settings of libcufile; null for its own
  public Transports(FileCalls calls, List<Store> given, @Nullable CuFileConfig settings) {
    this.cuFile = new CuFileSession(settings);
    this.calls = calls;
    this.stores = new Stores(calls, given);
    this.mapped = new MappedFiles(calls, stores::open);
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  public SourceFile openFile(Location file, CachePolicy policy) {
    checkOpen();
    return stores.open(file, policy);
  }

  /// As [#openFile(Location, CachePolicy)], until the options' cancellation.
  private SourceFile openFile(Location file, CachePolicy policy, TransferOptions options) {
    checkOpen();
    return stores.open(file, policy, options.cancellation());
  }

  /// The files in a folder of a remote store, as of [dev.gantry.core.spi.Store#list].
  public Optional<List<Location>> list(Location.Remote folder) {
    checkOpen();
    return stores.list(folder);
  }

  /// The store of a file or folder, to write there.
  public WritableStore writable(Location.Remote file) {
    checkOpen();
    return stores.writable(file);
  }

  /// The kernel's file calls, as this session makes them.
  public FileCalls calls() {
    return calls;
  }

  /// What this session has done, for those who do it to count.
  public SessionCounters counters() {
    return counters;
  }

  /// This session's cuFile driver.
  public CuFileSession cuFile() {
    return cuFile;
  }

  /// Who gets the bytes of a read.
  public enum Spread {
    /// One device.
    ONE_DEVICE,
    /// Each of several devices gets all of them.
    EACH_DEVICE,
    /// Devices get parts of them.
    PARTS
  }

  /// Does reads. Each byte is read once, also where several devices get it.
  ///
  /// @param devices each once
  /// @param tasks the reads with the memory that each fills; called once, after the files were found long
  ///     enough
  /// @throws MisuseException if a device is named twice, or a transport was asked for that serves one
  ///     device only
  public TransferReport transfer(
      List<Read> reads,
      List<Device> devices,
      Spread spread,
      Supplier<List<Task>> tasks,
      TransferOptions options) {
    return using(() -> {
      List<Device.Cuda> readers = Replicas.cudaDevices(devices);
      Device first = readers.isEmpty() ? Device.HOST : readers.getFirst();
      if (spread == Spread.ONE_DEVICE || readers.isEmpty()) {
        return transfer(reads, first, tasks, staging(readers, options, null), options);
      }
      TransferOptions staged = staged(options);
      Replicas replicas = spread == Spread.EACH_DEVICE ? Replicas.of(devices) : null;
      TransferReport report =
          transfer(reads, first, tasks, staging(readers, staged, replicas), staged);
      return replicas == null ? report : report.withDevices(replicas.report());
    });
  }

  private List<StagedTransport> staging(
      List<Device.Cuda> devices, TransferOptions options, @Nullable Replicas replicas) {
    return devices.stream()
        .map(device ->
            new StagedTransport(
                CudaContext.of(device),
                stagingPool(device).share(),
                options.limits().requestBytes(),
                false,
                replicas))
        .toList();
  }

  private static TransferOptions staged(TransferOptions options) {
    Transport asked = options.transport();
    if (asked != null && asked != Transport.STAGED) {
      throw new MisuseException(
          "slices, and what several devices get, are staged, and optTransport asks for " + asked);
    }
    return options.withTransport(Transport.STAGED);
  }

  /// @param staged of each device that is read to, of which `device` is the first; none for the host
  private TransferReport transfer(
      List<Read> reads,
      Device device,
      Supplier<List<Task>> tasks,
      List<StagedTransport> staged,
      TransferOptions options) {
    if (options.transport() == Transport.MAPPED) {
      throw new DeviceUnavailableException(
          "transport mapped was asked for and cannot serve: it brings the batches of datasets");
    }
    Map<Location, OpenFile> files = new LinkedHashMap<>();
    try {
      OpenFile last = null;
      for (Read read : reads) {
        // Reads of one file follow one another.
        if (last == null || !last.source().file().equals(read.file())) {
          last =
              files.computeIfAbsent(read.file(), one -> open(one, device, options, (_, _) -> {}));
        }
        last.source().checkHolds(read.fileOffset() + read.required());
      }
      boolean inMemory = files.values().stream().anyMatch(file -> file.source().inMemory());
      int threads = threads(device, options, inMemory);
      MemoryUse use = readersUse(reads.size(), 0, threads, device, options);
      Room.require(MemoryUse.on(Device.HOST, use.hostBytes()), Device.HOST, FEWER_READERS);
      Room.requirePinned(
          use.pinnedBytes(), staged.stream().map(StagedTransport::context).toList(), FEWER_READERS);
      int devices = Math.max(1, staged.size());
      List<Task> all = tasks.get();
      TransferReport report =
          new PlannedTransfer(all, files, staged, options, counters).run(devices * threads);
      if (options.sums() != null) {
        List<KnownSums.Known> _ = options.sums().compare();
      }
      return report;
    } finally {
      Cleanup.runAll(files.values().stream().<Runnable>map(file -> file::close).toList());
    }
  }

  /// The most that the readers of a load take for themselves.
  ///
  /// @param bufferBytes of each reader, for what does not lie in host memory as it does in the file
  /// @throws TransferException if a file cannot be opened
  public MemoryUse readersUse(
      List<Read> reads, long bufferBytes, Device device, TransferOptions options) {
    return readersUse(reads.size(), bufferBytes, threads(reads, device, options), device, options);
  }

  private MemoryUse readersUse(
      int reads, long bufferBytes, int threads, Device device, TransferOptions options) {
    int readers = Math.min(threads, reads);
    return switch (device) {
      case Device.Host _ -> MemoryUse.on(device, readers * bufferBytes);
      case Device.Cuda cuda ->
          stages(transport(device, options))
              ? new MemoryUse(
                  0, stagingPool(cuda).mostBytes(readers, options.limits().requestBytes()), 0)
              : MemoryUse.NOTHING;
    };
  }

  /// What several loads take together that run at once: they share the buffers.
  public MemoryUse sharedUse(MemoryUse loads, Device device, TransferOptions options) {
    if (!(device instanceof Device.Cuda cuda)) {
      return loads;
    }
    long most = stagingPool(cuda).mostBytes(MOST_STAGING_PAIRS, options.limits().requestBytes());
    return new MemoryUse(
        loads.deviceBytes(), Math.min(loads.pinnedBytes(), most), loads.hostBytes());
  }

  /// As [#threads(Device, TransferOptions, boolean)], by a look at the files only where it matters.
  private int threads(List<Read> reads, Device device, TransferOptions options) {
    int most = threads(device, options, true);
    int least = threads(device, options, false);
    return least == most
            || reads.stream()
                .map(Read::file)
                .distinct()
                .anyMatch(location -> isInMemory(location, options))
        ? most
        : least;
  }

  private boolean isInMemory(Location location, TransferOptions options) {
    try (SourceFile file = openFile(location, CachePolicy.BUFFERED, options)) {
      return file.inMemory();
    }
  }

  private static boolean stages(@Nullable Transport asked) {
    return asked == null || asked == Transport.STAGED;
  }

  /// Opens a file and chooses its transport.
  private OpenFile open(
      Location location,
      Device device,
      TransferOptions options,
      BiConsumer<Location, Object> opened) {
    SourceFile file = openFile(location, options.cachePolicy(), options);
    return Cleanup.orUndo(
        () -> {
          opened.accept(location, file.identity());
          return withTransport(file, device, options);
        },
        file::close);
  }

  private OpenFile withTransport(SourceFile file, Device device, TransferOptions options) {
    return new OpenFile(
        file,
        new FileTransport(
            file.file(),
            file.descriptors(),
            device,
            transport(device, options),
            cuFile,
            file.isCached()));
  }

  /// Opens a remote file out of the cache.
  private OpenFile reopen(OpenFile filling, Device device, TransferOptions options) {
    SourceFile file = filling.source().local(options.cachePolicy());
    return Cleanup.orUndo(() -> withTransport(file, device, options), file::close);
  }

  /// Remote files that are opened from now on go through `cache`, which is closed with this.
  public void use(FileCache cache) {
    using(() -> {
      stores.use(cache);
      return cache;
    });
  }

  /// What is to be summed goes by way of the CPU.
  private static @Nullable Transport transport(Device device, TransferOptions options) {
    Transport asked = options.transport();
    if (options.sums() == null) {
      return asked;
    }
    if (asked == Transport.GDS || asked == Transport.COMPAT) {
      throw new MisuseException(
          "a verified load compares what the CPU reads, and "
              + asked
              + " brings bytes past it: leave the transport to the load, or verify without it");
    }
    return asked == null && device instanceof Device.Cuda ? Transport.STAGED : asked;
  }

  private void checkOpen() {
    if (closed) {
      throw new MisuseException("this session is closed");
    }
  }

  /// Does `work`, which may use what [#close] frees.
  public <T> T using(Supplier<T> work) {
    use.readLock().lock();
    try {
      checkOpen();
      return work.get();
    } finally {
      use.readLock().unlock();
    }
  }

  /// Opens a transfer whose reads are not known in advance. The caller closes it before this.
  ///
  /// @param opened called with each file that is opened, or opened again; may refuse it by throwing
  public OnDemandTransfer onDemand(
      Device device, TransferOptions options, BiConsumer<Location, Object> opened) {
    checkOpen();
    int threads = threads(device, options, false);
    Cancellation ended = new Cancellation();
    return new OnDemandTransfer(
        file -> open(file, device, options.withCancellation(ended), opened),
        file -> reopen(file, device, options),
        ownStaging(device, options, threads),
        fetched(device, options),
        threads,
        mostFiles(calls.mostDescriptors()),
        options.cuFileRule(),
        counters,
        ended);
  }

  private @Nullable FetchedFiles fetched(Device device, TransferOptions options) {
    boolean asked = options.transport() == Transport.MAPPED;
    boolean allowed = options.transport() == null && options.cachePolicy() != CachePolicy.DIRECT;
    return switch (device) {
      case Device.Cuda cuda ->
          asked || allowed ? new FetchedFiles(mapped, CudaContext.of(cuda), asked) : null;
      case Device.Host _ ->
          allowed && options.cachePolicy() == CachePolicy.BY_RESIDENCY
              ? new FetchedFiles(mapped, null, false)
              : null;
    };
  }

  /// A quarter of the descriptors that this process may have, two for each file.
  private static int mostFiles(long mostDescriptors) {
    return Math.clamp(mostDescriptors / 8, FEWEST_FILES, MOST_FILES);
  }

  /// As many buffers as it has readers, whatever loads have: a ring that kept theirs for long would make
  /// them wait.
  private static @Nullable StagedTransport ownStaging(
      Device device, TransferOptions options, int threads) {
    if (!stages(options.transport()) || !(device instanceof Device.Cuda cuda)) {
      return null;
    }
    CudaContext context = CudaContext.of(cuda);
    StagingPool pool = new StagingPool(context, threads, Long.MAX_VALUE);
    long bufferBytes = ownBufferBytes(options);
    return new StagedTransport(context, pool.share(), bufferBytes, true);
  }

  private static long ownBufferBytes(TransferOptions options) {
    return options.limits().requestBytes() + SMALL_READS_BYTES;
  }

  /// The most that the readers of an on-demand transfer take for themselves.
  public MemoryUse onDemandUse(Device device, TransferOptions options) {
    boolean stages = device instanceof Device.Cuda && stages(options.transport());
    long pinned =
        stages
            ? Math.multiplyExact(2L * threads(device, options, false), ownBufferBytes(options))
            : 0;
    return new MemoryUse(0, pinned, 0);
  }

  /// Whether an on-demand transfer may have a kernel fetch what it brings.
  public static boolean mayFetch(Device device, TransferOptions options) {
    boolean allowed = options.transport() == null && options.cachePolicy() != CachePolicy.DIRECT;
    return device instanceof Device.Cuda && (options.transport() == Transport.MAPPED || allowed);
  }

  /// @throws MisuseException unless there are devices, and each is there once
  public static void requireDistinct(List<Device> devices) {
    Replicas.require(devices);
  }

  /// Why one device's bytes go to another by way of the host; empty where they need not.
  public static String peerRefusal(Device.Cuda from, Device.Cuda to) {
    return Replicas.refusal(from, to);
  }

  /// Makes what the first load or ring with default options takes of `device`, and leaves it idle: the
  /// context, streams, events and pinned buffers.
  static void warmUp(Device.Cuda device) {
    TransferOptions options = TransferOptions.defaults();
    int threads = threads(device, options, false);
    StagedTransport staging = Objects.requireNonNull(ownStaging(device, options, threads));
    List<StagedTransport.Reader> readers = new ArrayList<>();
    try {
      while (readers.size() < threads) {
        readers.add(Objects.requireNonNull(staging.openReader(() -> true)));
      }
    } finally {
      Cleanup.runAll(readers.stream().<Runnable>map(reader -> reader::close).toList());
    }
  }

  /// Frees the devices' streams, events and memory, and the pinned and host memory, that nothing uses
  /// now, and gives up registrations with cuFile and of mapped files.
  public void freeIdle() {
    DevicePreparation.await();
    Cleanup.runAll(
        List.of(cuFile::freeIdle, mapped::freeIdle, CudaContext::freeIdle, HostSlab::freeIdle));
  }

  /// The pinned buffers for a device's copies.
  public StagingPool stagingPool(Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    return pools.computeIfAbsent(
        device, _ -> new StagingPool(context, MOST_STAGING_PAIRS, MOST_STAGING_BYTES));
  }

  /// How many readers to start: the number in the options, or what suits the device and the machine.
  ///
  /// @param inMemory whether the file system keeps a file in memory
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
      // Sums take some of each reader's time.
      case Device.Cuda _ -> Math.clamp(cores, 2, inMemory || options.sums() != null ? 12 : 8);
    };
  }

  /// How a file would be loaded to `device`.
  public FileDiagnosis diagnose(Location file, Device device) {
    return using(() -> diagnoseOpen(file, device));
  }

  private FileDiagnosis diagnoseOpen(Location location, Device device) {
    try (OpenFile file = open(location, device, TransferOptions.defaults(), (_, _) -> {})) {
      SourceFile source = file.source();
      return new FileDiagnosis(
          file.transport().prediction(),
          source.descriptors().directAbsence(),
          source.size(),
          source.residentBytes());
    }
  }

  /// Waits for the running transfers, then frees what is idle and closes the cuFile driver.
  ///
  /// @throws MisuseException if a transfer's own listener calls this, which would wait for itself
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
      DevicePreparation.await();
      Cleanup.runAll(
          List.of(
              mapped::close,
              cuFile::close,
              stores::close,
              CudaContext::freeIdle,
              HostSlab::freeIdle));
    } finally {
      use.writeLock().unlock();
    }
  }
}
