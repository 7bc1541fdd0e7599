// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.Transport;
import dev.gantry.core.internal.checksum.KnownChecksums;
import dev.gantry.core.internal.copies.CopyKernels;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.copies.StagingPool;
import dev.gantry.core.internal.events.SessionCounters;
import dev.gantry.core.internal.mapped.KeptFiles;
import dev.gantry.core.internal.memory.Admission;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostSlab;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ReadPlan.Read;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.store.Stores;
import dev.gantry.core.internal.threads.Preparations;
import dev.gantry.core.internal.threads.ReaderGrowth;
import dev.gantry.core.internal.threads.UseGate;
import dev.gantry.core.internal.threads.WorkerThreads;
import dev.gantry.core.internal.transport.FileTransport.OpenFile;
import dev.gantry.core.internal.transport.PlannedTransfer.Task;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.WritableStore;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.function.BiFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Does a session's transfers, and owns the stores, the cuFile driver, the staging buffers and the
/// kept files that they share. Thread-safe.
public final class TransferEngine implements AutoCloseable {
  /// The most bytes of staging buffers for one device.
  private static final long MAX_STAGING_BYTES = 1L << 30;

  /// How many files are opened at the same time.
  private static final int MAX_OPENING = 16;

  private static final String FEWER_READERS =
      "take fewer readers (optThreads) or smaller requests (optRequestBytes)";

  private final FileCalls calls;
  private final Stores stores;
  private final Map<Device.Cuda, StagingPool> pools = new ConcurrentHashMap<>();
  private final CopyKernels copyKernels = new CopyKernels();
  private final CuFileSession cuFile;
  private final SessionCounters counters = new SessionCounters();
  private final KeptFiles mapped;
  private final UseGate gate = new UseGate("session", "load");

  /// How many readers the last load onto a device had at its end.
  private final Map<Device, Integer> readers = new ConcurrentHashMap<>();

  private final FileOpener opener;

  /// The last steps of [#closeKeepingIdle]. The constructor makes this list before there is anything
  /// to free.
  private final List<Runnable> closing;

  private final List<Runnable> freeing =
      List.of(this::freeOwn, CudaContext::freeIdle, HostSlab::freeIdle);

  private final Runnable free = this::free;
  private final Runnable freeOwn = this::freeOwn;

  public TransferEngine(FileCalls calls) {
    this(calls, List.of(), null);
  }

  /// @param given stores besides the registered ones; the engine closes them
  /// @param settings settings for libcufile; null for libcufile's own
  public TransferEngine(FileCalls calls, List<Store> given, @Nullable CuFileConfig settings) {
    this.cuFile = new CuFileSession(settings);
    this.calls = calls;
    this.stores = new Stores(calls, given);
    this.opener = new FileOpener(gate, stores, cuFile);
    this.mapped = new KeptFiles(calls, stores::open);
    this.closing = List.of(copyKernels::close, mapped::close, cuFile::close, stores::close);
  }

  private void free() {
    Preparations.await();
    Cleanup.runAll(freeing);
  }

  private void freeOwn() {
    Cleanup.runAll(closing);
  }

  /// @throws TransferException if the file cannot be opened, or is a directory
  public SourceFile openFile(Location file, CachePolicy policy) {
    return opener.open(file, policy);
  }

  /// Lists the files in a folder of a remote store, as [dev.gantry.core.spi.Store#list] does.
  public Optional<List<Location>> list(Location.Remote folder) {
    gate.requireOpen();
    return stores.list(folder);
  }

  /// Whether a file's store keeps copies on this machine.
  public boolean keeps(Location.Remote file) {
    gate.requireOpen();
    return stores.keeps(file);
  }

  /// Copies a remote file to a disk of this machine, as [dev.gantry.core.spi.Store#fetch] does.
  public Path fetch(Location.Remote file) {
    gate.requireOpen();
    return stores.fetch(file);
  }

  /// The store of a file or folder, for writing.
  public WritableStore writable(Location.Remote file) {
    gate.requireOpen();
    return stores.writable(file);
  }

  /// The file calls that this session makes.
  public FileCalls calls() {
    return calls;
  }

  /// The session's counters, to which each operation adds.
  public SessionCounters counters() {
    return counters;
  }

  /// This session's cuFile driver.
  public CuFileSession cuFile() {
    return cuFile;
  }

  /// The devices that get the bytes of a read.
  public enum Spread {
    /// One device gets all bytes.
    ONE_DEVICE,
    /// Each of several devices gets all bytes.
    EACH_DEVICE,
    /// Each of several devices gets a part of the bytes.
    PARTS
  }

  /// Does reads. Each byte is read once, even if several devices get it.
  ///
  /// @param devices the devices, each once
  /// @param tasks makes the tasks: each read with the memory that it fills. Called once, after all
  ///     files were found to be long enough
  /// @throws MisuseException if a device is named twice
  /// @throws DeviceUnavailableException if a transport was asked for that does not serve these devices
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
        return transfer(reads, first, tasks, () -> staging(readers, options, null), options);
      }
      Replicas replicas = spread == Spread.EACH_DEVICE ? Replicas.of(devices) : null;
      requireServes(options.transport(), readers.size() == devices.size(), replicas);
      TransferReport report =
          transfer(reads, first, tasks, () -> staging(readers, options, replicas), options);
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
                copyKernels,
                replicas))
        .toList();
  }

  /// @param onlyGpus whether no part of the load goes to host memory
  private static void requireServes(
      @Nullable Transport asked, boolean onlyGpus, @Nullable Replicas replicas) {
    if (asked != Transport.GDS && asked != Transport.COMPAT) {
      return;
    }
    String reason =
        onlyGpus
            ? replicas == null ? "" : replicas.refusal()
            : "some of the bytes go to host memory";
    if (!reason.isEmpty()) {
      throw TransportOracle.unavailable(asked, reason);
    }
  }

  /// @param staging gives the staging of each device that is read to, the staging of `device`
  ///     first; empty for the host. Called after the files are open, so that another thread can
  ///     make the device's context while they are opened
  private TransferReport transfer(
      List<Read> reads,
      Device device,
      Supplier<List<Task>> tasks,
      Supplier<List<StagedTransport>> staging,
      TransferOptions options) {
    if (options.transport() == Transport.MAPPED) {
      throw new DeviceUnavailableException(
          "transport mapped was asked for and cannot serve: it brings the batches of datasets");
    }
    Map<Location, OpenFile> opened = new ConcurrentHashMap<>();
    List<StagedTransport> staged = new ArrayList<>();
    try {
      Map<Location, OpenFile> files = open(reads, device, options, opened);
      staged.addAll(staging.get());
      boolean inMemory = files.values().stream().anyMatch(file -> file.source().inMemory());
      boolean local = files.values().stream().anyMatch(file -> file.source().isLocal());
      int threads = ReaderRule.threads(device, options, inMemory);
      if (device instanceof Device.Cuda cuda
          && ReaderRule.stages(ReaderRule.transport(device, options))) {
        // For remote files, one pair of buffers is required here; more are added later if there is
        // memory for them.
        Admission.requirePinned(
            stagingPool(cuda)
                .mostBytes(
                    local ? Math.min(threads, reads.size()) : 1, options.limits().requestBytes()),
            staged.stream().map(StagedTransport::context).toList(),
            FEWER_READERS);
      }
      if (local && ReaderRule.stages(ReaderRule.transport(device, options))) {
        awaitTurn(staged, files.keySet(), options);
      }
      ReaderGrowth growth = growth(device, threads, Math.max(1, staged.size()), options);
      List<Task> all = tasks.get();
      TransferReport report =
          new PlannedTransfer(all, files, staged, growth, options, counters).run();
      readers.put(device, growth.joined());
      if (options.checksums() != null) {
        List<KnownChecksums.Known> _ = options.checksums().compare();
      }
      return report;
    } finally {
      try {
        Cleanup.forEach(staged, one -> one.buffers().endTurn());
      } finally {
        Cleanup.forEach(opened.values(), OpenFile::close);
      }
    }
  }

  /// Begins with as many readers as the last load onto the device ended with.
  ///
  /// @param threads the fewest readers of a device
  /// @param devices how many devices the readers serve
  private ReaderGrowth growth(Device device, int threads, int devices, TransferOptions options) {
    int begin = devices * threads;
    int most = devices * ReaderRule.mostThreads(device, options, threads);
    return new ReaderGrowth(Math.max(begin, readers.getOrDefault(device, 0)), most);
  }

  /// Waits until a pair of staging buffers is free for each device, so that a load allocates its
  /// memory only when it can begin to read. All loads wait for devices in the same order, so that
  /// they cannot deadlock.
  private static void awaitTurn(
      List<StagedTransport> staged, Set<Location> files, TransferOptions options) {
    Cancellation cancellation = options.cancellation();
    staged.stream()
        .sorted(Comparator.comparingInt(one -> one.context().device().ordinal()))
        .forEach(one -> {
          Runnable forget = cancellation.whenCancelled(one.buffers()::wake);
          try {
            if (!one.buffers().awaitTurn(one.bufferBytes(), () -> !cancellation.isCancelled())) {
              throw new TransferException(
                  "load", WorkerThreads.names(files), new Failure.Cancelled());
            }
          } finally {
            forget.run();
          }
        });
  }

  /// Opens the files of all reads. Remote files are opened concurrently, since opening waits for a
  /// server. The first failure ends the opening of the other files.
  ///
  /// @param opened receives each file as soon as it is open; the caller closes the files, also
  ///     after a failure
  /// @return the files in the order of the reads
  private Map<Location, OpenFile> open(
      List<Read> reads, Device device, TransferOptions options, Map<Location, OpenFile> opened) {
    Map<Location, Long> ends = new LinkedHashMap<>();
    for (int i = 0; i < reads.size(); i++) {
      // The reads of one file are consecutive, in the order of their offsets, so its last read
      // ends last.
      if (i + 1 == reads.size() || !reads.get(i + 1).file().equals(reads.get(i).file())) {
        Read last = reads.get(i);
        ends.merge(last.file(), last.fileOffset() + last.required(), Math::max);
      }
    }
    List<Location> remote =
        ends.keySet().stream().filter(Location.Remote.class::isInstance).toList();
    if (remote.size() > 1) {
      WorkerThreads workers =
          new WorkerThreads(
              "open", () -> WorkerThreads.names(remote), "gantry-open-", options.cancellation());
      Cancellation failed = new Cancellation();
      workers.whenFailed(failed::cancel);
      TransferOptions own = options.withCancellation(failed);
      workers.forEach(
          MAX_OPENING, remote, one -> opened.put(one, opener.open(one, device, own)), () -> {});
    }
    Map<Location, OpenFile> files = new LinkedHashMap<>();
    ends.forEach((file, end) -> {
      OpenFile one = opened.computeIfAbsent(file, closed -> opener.open(closed, device, options));
      one.source().checkHolds(end);
      files.put(file, one);
    });
    return files;
  }

  /// Opens remote files through `cache` from now on. The engine closes the cache.
  public void use(FileCache cache) {
    using(() -> {
      stores.use(cache);
      return cache;
    });
  }

  /// Does `work`, which may use what [#close] frees.
  public <T> T using(Supplier<T> work) {
    return gate.using(work);
  }

  /// Opens a transfer whose reads are not known in advance. The caller closes the transfer before this engine.
  ///
  /// @param opened called with each file that is opened, or opened again; throws to refuse it
  public OnDemandTransfer onDemand(
      Device device, TransferOptions options, BiConsumer<Location, Object> opened) {
    gate.requireOpen();
    return new OnDemandTransfer(
        opener, mapped, device, options, opened, calls.mostDescriptors(), counters);
  }

  /// Frees idle streams, events, device memory, pinned memory and host memory, and the
  /// registrations of kept files.
  public void freeIdle() {
    Preparations.await();
    Cleanup.runAll(List.of(mapped::freeIdle, CudaContext::freeIdle, HostSlab::freeIdle));
  }

  /// The pool of pinned buffers for copies to and from a device.
  public StagingPool stagingPool(Device.Cuda device) {
    CudaContext context = CudaContext.of(device);
    return pools.computeIfAbsent(
        device, _ -> new StagingPool(context, ReaderRule.MAX_READERS, MAX_STAGING_BYTES));
  }

  /// Opens a file as a load to `device` opens it, and calls `look` with it.
  public <T> T look(Location file, Device device, BiFunction<SourceFile, FileTransport, T> look) {
    return using(() -> {
      try (OpenFile opened = opener.open(file, device, TransferOptions.defaults())) {
        return look.apply(opened.source(), opened.transport());
      }
    });
  }

  /// @throws dev.gantry.core.MisuseException if a transfer's listener calls this, because [#close]
  ///     would then wait for its own caller
  public void requireMayClose() {
    gate.requireMayClose();
  }

  /// Waits for the running transfers, then frees idle resources and closes the kept files, the
  /// cuFile driver and the stores.
  ///
  /// @throws MisuseException if a transfer's listener calls this, because the call would wait for
  ///     its own caller
  @Override
  public void close() {
    gate.close(free);
  }

  /// Closes this engine as [#close] does, but neither waits for preparations nor frees the idle
  /// resources, which all sessions of the process share.
  ///
  /// @throws MisuseException as [#close] does
  public void closeKeepingIdle() {
    gate.close(freeOwn);
  }
}
