// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.session;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.CuFileConfig;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Extent;
import dev.gantry.core.Location;
import dev.gantry.core.Metrics;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.TransferReport;
import dev.gantry.core.internal.batch.BatchPlanSource;
import dev.gantry.core.internal.cache.CacheSettings;
import dev.gantry.core.internal.cache.RemoteCache;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.RangeWrite;
import dev.gantry.core.internal.commit.SourceReading;
import dev.gantry.core.internal.commit.WriteOperation;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.convert.Converters;
import dev.gantry.core.internal.convert.Dequantisation;
import dev.gantry.core.internal.copies.Replicas;
import dev.gantry.core.internal.diagnosis.Diagnosis;
import dev.gantry.core.internal.diagnosis.FileDiagnosis;
import dev.gantry.core.internal.events.DiskSpeeds;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.plan.ExtentRequest;
import dev.gantry.core.internal.resident.ResidentImage;
import dev.gantry.core.internal.resident.ResidentSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.ring.Rings;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.DevicePreparation;
import dev.gantry.core.internal.transport.ReaderRule;
import dev.gantry.core.internal.transport.TransferEngine;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.spi.Store;
import dev.gantry.core.spi.WritableStore;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The implementation of a session. It opens stores and drivers when they are first needed, keeps
/// them from load to load, and frees them when it is closed. Loaded arrays outlive the session.
///
/// Thread-safe. Several loads may run at once, and share the session's staging buffers evenly.
public final class GantrySession implements Session {
  private static volatile @Nullable GantrySession shared;

  private final TransferEngine engine;
  private final Rings rings;
  private final Converters converters = new Converters();

  /// The cache of remote files, which the engine closes; null if there is none.
  private @Nullable RemoteCache cache;

  /// Whether this is the process's own session, which stays open.
  private final boolean stays;

  private GantrySession(
      FileCalls calls, List<Store> stores, @Nullable CuFileConfig settings, boolean stays) {
    this.stays = stays;
    this.engine = new TransferEngine(calls, stores, settings);
    this.rings = new Rings(engine, converters);
    CacheSettings.ofProcess().ifPresent(this::use);
  }

  @Override
  public void cacheRemoteFiles(Path folder, long mostBytes) {
    use(new CacheSettings(folder, mostBytes));
  }

  /// Makes a cache with these settings for files that are opened from now on, unless the present
  /// cache has them.
  private synchronized void use(CacheSettings chosen) {
    if (cache == null || !cache.isOf(chosen)) {
      RemoteCache opened = new RemoteCache(engine.calls(), chosen);
      Cleanup.orUndo(() -> engine.use(opened), opened::close);
      cache = opened;
    }
  }

  /// The state of the cache of remote files; empty if there is none.
  ///
  /// @throws TransferException if the cache cannot be listed
  public synchronized Optional<RemoteCache.Use> cacheUse() {
    return Optional.ofNullable(cache).map(RemoteCache::use);
  }

  /// Links the functions of the C library, which takes a tenth of a second in a new process, while libcuda starts.
  private static FileCalls platform() {
    DevicePreparation.beginDriver();
    return FileCalls.ofPlatform();
  }

  public static GantrySession open() {
    return open(platform());
  }

  /// Opens a session with settings for libcufile.
  public static GantrySession open(CuFileConfig settings) {
    return new GantrySession(platform(), List.of(), settings, false);
  }

  /// Opens a session that makes its file calls through `calls`, for tests that make such calls
  /// fail.
  public static GantrySession open(FileCalls calls) {
    return open(calls, List.of());
  }

  /// Opens a session with stores besides the registered ones, for tests.
  public static GantrySession open(FileCalls calls, List<Store> stores) {
    return new GantrySession(calls, stores, null, false);
  }

  /// Casts a session to its only implementation.
  public static GantrySession of(Session session) {
    return (GantrySession) MisuseException.requireGiven("session", session);
  }

  /// The process's own session, which stays open, for callers that do not keep one.
  ///
  /// @throws MisuseException if the cache is configured wrongly; the next call tries again
  public static GantrySession shared() {
    GantrySession present = shared;
    return present == null ? openShared() : present;
  }

  private static synchronized GantrySession openShared() {
    GantrySession present = shared;
    if (present == null) {
      present = new GantrySession(platform(), List.of(), null, true);
      shared = present;
    }
    return present;
  }

  /// Loads extents into memory of `device`.
  ///
  /// @param wanted extents in any order; bytes that are in several extents are read once
  /// @throws TransferException if a file or device fails, or the caller cancels; nothing stays
  ///     allocated then
  /// @throws DeviceUnavailableException if there is no such device, or the only transport asked
  ///     for cannot serve
  public Loaded load(List<ExtentRequest> wanted, Device device, TransferOptions options) {
    return ResidentLoad.serves(wanted, options)
        ? ResidentLoad.map(wanted, device, others -> read(others, device, options))
        : read(wanted, device, options);
  }

  private Loaded read(List<ExtentRequest> wanted, Device device, TransferOptions options) {
    return loadAll(wanted, List.of(device), options).getFirst();
  }

  private List<Loaded> loadAll(
      List<ExtentRequest> wanted, List<Device> devices, TransferOptions asked) {
    DevicePreparation.beginLoad(devices);
    TransferOptions options =
        ReaderRule.ofLoad(devices, wanted.stream().map(one -> one.extent().file()), asked);
    return load(new NewSlabs.Whole(wanted, devices, options), options);
  }

  private List<Loaded> load(NewSlabs slabs, TransferOptions options) {
    return Cleanup.orUndo(
        () -> LoadOperation.run(engine, slabs, options), slabs::loaded, _ -> slabs.release());
  }

  /// Reads files into memory that other processes can map. A server of resident weights does this
  /// for its clients.
  ///
  /// @param version the version of the weights
  /// @param entry the file that clients open; empty if they open a folder
  /// @throws TransferException if there is too little memory, a file or device fails, or the
  ///     kernel or driver does not support memory that processes share; nothing stays allocated
  ///     then
  public ResidentImage keepResident(
      int version,
      String entry,
      List<ResidentSource> sources,
      Device device,
      TransferOptions options) {
    return engine.using(() -> ResidentLoad.keep(engine, version, entry, sources, device, options));
  }

  /// Loads extents into memory of each of several devices, and reads each byte once; see
  /// [TransferEngine#transfer].
  ///
  /// @return one result for each device, in the devices' order, all with the report of the whole load
  /// @throws dev.gantry.core.MisuseException if a device is named twice, or none is named; otherwise throws what
  ///     [#load(List, Device, TransferOptions)] throws
  public List<Loaded> loadOnEach(
      List<ExtentRequest> wanted, List<Device> devices, TransferOptions options) {
    Replicas.require(devices);
    return loadAll(wanted, devices, options);
  }

  /// Loads pieces of memory, each of which is filled by strided ranges of files. Each device gets
  /// pieces of its own. Each byte is read once, even if several pieces need it.
  ///
  /// @param devices the devices, each once
  /// @param parts the pieces of each device
  /// @return one result for each device, in the devices' order, all with the report of the whole load
  /// @throws dev.gantry.core.MisuseException as [#loadOnEach] does; otherwise throws what
  ///     [#load(List, Device, TransferOptions)] throws
  public List<Loaded> loadSlices(
      List<Device> devices, List<List<Sliced>> parts, TransferOptions asked) {
    Replicas.require(devices);
    DevicePreparation.beginLoad(devices);
    TransferOptions options =
        ReaderRule.ofLoad(
            devices, parts.stream().flatMap(List::stream).flatMap(Sliced::files), asked);
    return load(new NewSlabs.Slices(parts, devices, options), options);
  }

  /// Reads bytes of files into memory of the caller, and returns when all bytes have arrived.
  /// Waits first for work that is queued on the memory's devices. Only the memory of `parts`
  /// changes.
  ///
  /// @throws MisuseException if a piece of memory has another length than its extent, is read-only or closed, is not on
  ///     the device that it names, or reaches past its allocation; or if two parts overlap. Nothing has changed then
  /// @throws TransferException if a file cannot be opened or is too short; nothing has changed then
  /// @throws TransferException.IncompleteRead if a file or device fails later, or the caller cancels
  public TransferReport read(List<ReadInto> parts, TransferOptions options) {
    return engine.using(() -> new ReadIntoOperation(engine, parts, options).run());
  }

  /// Fills new memory of `device` with bytes that the CPU makes, such as tensors that must be
  /// decoded.
  ///
  /// @return a region for each of `fills`, aligned to 64 bytes
  /// @throws TransferException if there is too little memory, the copy to the device fails, or the
  ///     caller cancels. Nothing stays allocated then, and neither if a writer throws
  public Loaded fill(List<HostFill> fills, Device device, TransferOptions options) {
    return engine.using(() -> new FillOperation(fills, device, options).run());
  }

  /// Maps extents as private, copy-on-write host memory: the kernel reads a page when it is first
  /// touched.
  ///
  /// An extent whose offset in the file breaks its alignment is copied instead. The files must not
  /// shrink while they are mapped. If the files have no file descriptors, all bytes are read at
  /// once.
  ///
  /// @throws MisuseException if a file is not local
  public Loaded map(List<ExtentRequest> wanted) {
    if (ResidentLoad.serves(wanted, TransferOptions.defaults())) {
      return load(wanted, Device.HOST, TransferOptions.defaults());
    }
    if (engine.calls().descriptorAbsence().isEmpty()) {
      return MappedLoad.run(
          wanted,
          MappedLoad.ofFiles(engine, wanted),
          others -> read(others, Device.HOST, TransferOptions.defaults()));
    }
    wanted.forEach(one -> one.extent().file().path());
    return load(wanted, Device.HOST, TransferOptions.defaults());
  }

  /// Opens a ring that fills batches ahead; see [PrefetchRing].
  ///
  /// @param options the ring's options. Slots and the pinned memory for host writes are allocated
  ///     in this call. Each reader pins its staging buffers when it first stages; if that fails,
  ///     the batch fails
  /// @param source the source of the batches; the ring closes it. If this throws, the source is
  ///     closed, too
  /// @throws TransferException if the memory cannot be allocated; nothing stays allocated then
  /// @throws DeviceUnavailableException if there is no such device
  public <T> PrefetchRing<T> ring(RingOptions options, BatchPlanSource<T> source) {
    return rings.open(options, source);
  }

  /// Writes files, and returns when all of them are durable under their names. All bytes are on the disk before the
  /// first file gets its name, so after a crash or failure at any point each name has either the old file or the
  /// complete new one.
  ///
  /// @param files files that nothing else may write during this call; they are renamed to their
  ///     targets in this order
  /// @throws TransferException if a file or device fails, or the caller cancels. The written files
  ///     are removed then. All targets are unchanged, unless the failure is that of a `rename` or
  ///     of the synchronisation of a folder after it
  /// @throws DeviceUnavailableException if the only transport asked for cannot serve
  /// @throws MisuseException if two of the files have the same name
  public WriteReport write(List<NewFile> files, WriteOptions options) {
    return engine.using(() -> new WriteOperation(engine, files, options).run());
  }

  /// Writes ranges of a file in place, and returns when they are durable. Creates the file if it
  /// does not exist, and extends it if a range reaches past its end. The file's other bytes do not
  /// change.
  ///
  /// @throws MisuseException if ranges overlap, or memory is closed, is not on the device that it names, or reaches
  ///     past its allocation; nothing has changed then
  /// @throws TransferException if the file or a device fails, or the caller cancels; ranges may be
  ///     written in part then
  public TransferReport write(Path file, List<RangeWrite.Range> ranges, WriteOptions options) {
    return engine.using(() -> {
      MemoryCheck.ofSources(ranges.stream().map(RangeWrite.Range::memory).toList());
      return new RangeWrite(engine, file, ranges, options).run();
    });
  }

  /// Begins a file whose size is not known yet. The file may outlive the session.
  ///
  /// @param file the name that [AppendedFile#commit] gives the file
  /// @throws TransferException if no file can be created in its folder
  public AppendedFile append(Path file) {
    return new AppendedFile(engine.calls(), file, engine.counters());
  }

  /// Computes the CRC32C of a source's bytes, after all work queued on its device.
  ///
  /// @throws TransferException if the file or device fails, or the caller is interrupted while it
  ///     waits for staging buffers
  public int checksum(Source source) {
    return engine.using(() -> new SourceReading(engine).checksum(source));
  }

  /// Computes the CRC32C of each block of a source, in one pass; see [#checksum].
  ///
  /// @param blockBytes the size of a block; the last may be shorter
  public int[] checksums(Source source, long blockBytes) {
    return engine.using(() -> new SourceReading(engine).checksums(source, blockBytes));
  }

  /// Computes the CRC32C of ranges of files, on several threads.
  ///
  /// @throws TransferException if a file cannot be opened or read, or ends before a range
  public int[] checksums(List<Extent> extents) {
    return engine.using(() -> new SourceReading(engine).checksums(extents));
  }

  /// Copies a source's bytes to host memory, after all work queued on its device.
  ///
  /// @param target memory of the source's length or more
  /// @throws TransferException if the file or device fails, or the caller is interrupted while it
  ///     waits for staging buffers
  public void copy(Source source, MemorySegment target) {
    engine.using(() -> {
      new SourceReading(engine).copy(source, target);
      return target;
    });
  }

  /// Opens a file for a caller that reads it piece by piece. The file may outlive the session.
  ///
  /// @throws TransferException if the file cannot be opened, or is a directory
  public SourceFile openFile(Location file) {
    return engine.openFile(file, CachePolicy.BUFFERED);
  }

  /// Lists the files in a folder of a remote store, as [Store#list] does.
  public Optional<List<Location>> list(Location.Remote folder) {
    return engine.list(folder);
  }

  /// Whether a file's store keeps copies on this machine, as [Store#keepsFiles] says.
  public boolean keeps(Location.Remote file) {
    return engine.keeps(file);
  }

  /// Copies a remote file to a disk of this machine, as [Store#fetch] does.
  public Path fetch(Location.Remote file) {
    return engine.fetch(file);
  }

  /// The store of a file or folder, for writing. The session closes it.
  ///
  /// @throws MisuseException if no store serves the location, or the store takes no files
  public WritableStore writable(Location.Remote file) {
    return engine.writable(file);
  }

  /// Returns the operations that change folders durably.
  public Folders folders() {
    return new Folders(engine.calls());
  }

  /// Converts bytes that were loaded, as [Converters#convert] does.
  public void convert(List<Dequantisation.Task> tasks, Device device, Cancellation cancellation) {
    engine.using(() -> {
      converters.convert(tasks, device, cancellation);
      return tasks;
    });
  }

  /// Prepares a conversion, best while the bytes are being loaded; see [Converters#prepare].
  public void prepareConversion(Dequantisation what, Device device) {
    engine.using(() -> {
      converters.prepare(what, device);
      return what;
    });
  }

  @Override
  public void prepare(Device device) {
    MisuseException.requireGiven("device", device);
    DevicePreparation.begin(() -> device);
  }

  /// Begins to open a device in the background, on hosts with NVIDIA's driver. Opening takes a
  /// tenth of a second, in which programs read headers and start their libraries.
  ///
  /// @param choice called in the background; chooses the host to open nothing
  public void prepareContext(Supplier<Device> choice) {
    DevicePreparation.beginContext(choice);
  }

  @Override
  public void freeIdle() {
    engine.freeIdle();
  }

  @Override
  public Metrics metrics() {
    return engine
        .counters()
        .snapshot(LiveResources.snapshot().holdings(), LiveResources.mostUsed());
  }

  /// The speeds at which the disks served this session's reads past the page cache.
  public List<DiskSpeeds.Disk> disks() {
    return engine.counters().disks().disks();
  }

  /// Returns which transports this machine can use, and the reasons why it cannot use the others.
  public Diagnosis diagnose() {
    return Diagnosis.of(engine);
  }

  /// Finds the transport that loads of a file to `device` would use, without reading it.
  ///
  /// @throws TransferException if the file cannot be opened
  /// @throws DeviceUnavailableException if there is no such device
  public FileDiagnosis diagnose(Location file, Device device) {
    return FileDiagnosis.of(engine, file, device);
  }

  /// The first CUDA device, or [Device#HOST] if there is none.
  public static Device bestDevice() {
    return CudaDriver.load().toOptional().filter(driver -> driver.deviceCount() > 0).isPresent()
        ? new Device.Cuda(0)
        : Device.HOST;
  }

  /// Closes the open rings and waits for the running loads, then frees idle resources and closes
  /// the cuFile driver. Loaded arrays stay valid, and so do batches that a consumer has.
  ///
  /// @throws MisuseException if a ring's source (even one that is being closed), a host writer or
  ///     a load's listener calls this, because the call would wait for its own caller
  @Override
  public void close() {
    close(engine::close);
  }

  /// Closes the session as [#close] does, but leaves the process's idle memory and streams to the
  /// other sessions, and does not wait for preparations.
  ///
  /// @throws MisuseException as [#close] does
  public void closeKeepingIdle() {
    close(engine::closeKeepingIdle);
  }

  private void close(Runnable closeEngine) {
    if (stays) {
      throw new MisuseException("the process's own session stays open; open one to close it");
    }
    // Both checks come before anything is closed, so that a refusal leaves the session as it is.
    rings.requireMayClose();
    engine.requireMayClose();
    try {
      rings.close();
    } finally {
      try {
        closeEngine.run();
      } finally {
        // The engine has waited for running conversions, so the converters can be closed now.
        converters.close();
      }
    }
  }
}
