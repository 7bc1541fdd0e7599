package dev.gantry.core.internal.session;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.DeviceUnavailableException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.Session;
import dev.gantry.core.Source;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.commit.AppendedFile;
import dev.gantry.core.internal.commit.Folders;
import dev.gantry.core.internal.commit.NewFile;
import dev.gantry.core.internal.commit.SourceReading;
import dev.gantry.core.internal.commit.WriteOperation;
import dev.gantry.core.internal.commit.WriteOptions;
import dev.gantry.core.internal.commit.WriteReport;
import dev.gantry.core.internal.natives.CudaDriver;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import dev.gantry.core.internal.plan.Planner;
import dev.gantry.core.internal.plan.ReadPlan;
import dev.gantry.core.internal.plan.Wanted;
import dev.gantry.core.internal.ring.BatchPlanSource;
import dev.gantry.core.internal.ring.PrefetchRing;
import dev.gantry.core.internal.ring.RingOptions;
import dev.gantry.core.internal.ring.Rings;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.internal.transport.FileDiagnosis;
import dev.gantry.core.internal.transport.TransferOptions;
import dev.gantry.core.internal.transport.Transports;
import dev.gantry.core.spi.Store;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.List;

/// A session: it opens devices and paths when they are first needed, keeps what is dear to make
/// (pinned buffers, the cuFile driver) from load to load, and frees it when it closes. What it
/// loaded outlives it.
///
/// Thread-safe; several loads may run at once, and share the session's staging buffers evenly.
public final class GantrySession implements Session {
  private final Transports paths;
  private final Rings rings;

  private GantrySession(FileCalls calls, List<Store> stores) {
    this.paths = new Transports(calls, stores);
    this.rings = new Rings(paths);
  }

  public static GantrySession open() {
    return open(Libc.INSTANCE);
  }

  /// For tests, which put calls that fail on purpose in front of the kernel's.
  public static GantrySession open(FileCalls calls) {
    return open(calls, List.of());
  }

  /// For tests: with stores besides those that are registered.
  public static GantrySession open(FileCalls calls, List<Store> stores) {
    return new GantrySession(calls, stores);
  }

  /// The session behind the public interface, which this class alone implements.
  public static GantrySession of(Session session) {
    return (GantrySession) session;
  }

  /// The process's own session, which nobody closes: for callers that have no place to keep one.
  public static GantrySession shared() {
    return Shared.SESSION;
  }

  private static final class Shared {
    static final GantrySession SESSION = open();
  }

  /// Brings extents into memory of `device`.
  ///
  /// @param wanted in any order; overlaps are read once
  /// @throws TransferException if a file or device fails, or the caller cancels; nothing stays
  ///     allocated then
  /// @throws DeviceUnavailableException if there is no such device, or the only path asked for
  ///     cannot serve
  public Loaded load(List<Wanted> wanted, Device device, TransferOptions options) {
    ReadPlan plan = Planner.plan(wanted, options.limits());
    return new LoadOperation(paths, plan, device, options).run();
  }

  /// Brings bytes that the CPU makes into memory of `device`: those of a load that do not lie in
  /// their files as memory holds them.
  ///
  /// @return with a region for each of `fills`, aligned to 64 bytes
  /// @throws TransferException if there is no room, the copy to the device fails, or the caller
  ///     cancels; nothing stays allocated then, nor where a writer throws
  public Loaded fill(List<HostFill> fills, Device device, TransferOptions options) {
    return paths.using(() -> new FillOperation(fills, device, options).run());
  }

  /// Maps extents as private, copy-on-write memory of the CPU: bytes are read when they are first
  /// touched.
  ///
  /// An extent whose address in the file breaks its alignment is copied. The files must not shrink
  /// while they are mapped.
  public Loaded map(List<Wanted> wanted) {
    return MapOperation.run(paths, wanted);
  }

  /// Opens a ring that fills batches ahead; see [PrefetchRing].
  ///
  /// @param options the slots that they ask for, and the pinned memory for what the CPU makes, are
  ///     taken now. Each reader pins the buffers that it stages in when it first stages: where they
  ///     are not to be had then, that batch fails
  /// @param source which the ring owns from here on: it is closed with the ring, and also where
  ///     this throws
  /// @throws TransferException if the memory is not to be had; nothing stays allocated then
  /// @throws DeviceUnavailableException if there is no such device
  public <T> PrefetchRing<T> ring(RingOptions options, BatchPlanSource<T> source) {
    return rings.open(options, source);
  }

  /// Writes files, and returns when all of them are on the disk under their names. Before the first
  /// gets its name, all of them are on the disk: so a crash or failure at any point leaves each of
  /// these names to the old file or to the whole new one.
  ///
  /// @param files which nobody else writes meanwhile; they get their names in this order
  /// @throws TransferException if a file or device fails, or the caller cancels; what was written
  ///     is removed then, and nothing has changed unless the failure is of a `rename` or of a
  ///     folder's synchronisation after it
  /// @throws DeviceUnavailableException if the only path asked for cannot serve
  /// @throws MisuseException if two of the files have the same name
  public WriteReport write(List<NewFile> files, WriteOptions options) {
    return paths.using(() -> new WriteOperation(paths, files, options).run());
  }

  /// Begins a file of a size that is not known yet. It outlives the session.
  ///
  /// @param file gets this name only by [AppendedFile#commit]
  /// @throws TransferException if no file can be made in its folder
  public AppendedFile append(Path file) {
    return new AppendedFile(paths.calls(), file);
  }

  /// The CRC32C of bytes, wherever they are; whatever was queued on a device before comes first.
  ///
  /// @throws TransferException if the file or device fails, or the caller is interrupted while it
  ///     waits for staging buffers
  public int checksum(Source source) {
    return paths.using(() -> new SourceReading(paths).checksum(source));
  }

  /// The CRC32C of each block of bytes, wherever they are, in one pass; as [#checksum] otherwise.
  ///
  /// @param blockBytes the size of a block; the last may be shorter
  public int[] checksums(Source source, long blockBytes) {
    return paths.using(() -> new SourceReading(paths).checksums(source, blockBytes));
  }

  /// Copies bytes, wherever they are, to memory of the CPU; whatever was queued on a device before
  /// comes first.
  ///
  /// @param target of the source's length or more
  /// @throws TransferException if the file or device fails, or the caller is interrupted while it
  ///     waits for staging buffers
  public void copy(Source source, MemorySegment target) {
    paths.using(() -> {
      new SourceReading(paths).copy(source, target);
      return target;
    });
  }

  /// Opens a file to be read from beginning to end, piece by piece, by its reader's own plan. It
  /// outlives the session.
  ///
  /// @throws TransferException if the file cannot be opened, or is a directory
  public SourceFile openFile(Location file) {
    return paths.openFile(file, CachePolicy.BUFFERED);
  }

  /// Lasting changes of folders.
  public Folders folders() {
    return new Folders(paths.calls());
  }

  /// Frees the pinned buffers that the session keeps for the next load, as far as none uses them
  /// now: for a process that has loaded what it needs. The next load makes them anew.
  @Override
  public void freeIdle() {
    paths.freeIdle();
  }

  /// What this machine has, and why not more.
  public Diagnosis diagnose() {
    return Examination.of(paths);
  }

  /// Which path a file would take to `device`, without reading it.
  ///
  /// @throws TransferException if the file cannot be opened
  /// @throws DeviceUnavailableException if there is no such device
  public FileDiagnosis diagnose(Location file, Device device) {
    return paths.diagnose(file, device);
  }

  /// The first CUDA device, or [Device#HOST] where there is none.
  public static Device bestDevice() {
    return CudaDriver.load().toOptional().filter(driver -> driver.deviceCount() > 0).isPresent()
        ? new Device.Cuda(0)
        : Device.HOST;
  }

  /// Closes the rings that are still open and waits for the loads under way, then frees staging
  /// buffers and closes the cuFile driver. What was loaded stays, and so do batches that a consumer
  /// has.
  ///
  /// @throws MisuseException if a ring's source or maker calls it, also a source that is being
  ///     closed, or a load's own listener: they could only wait for themselves
  @Override
  public void close() {
    rings.requireMayClose();
    try {
      rings.close();
    } finally {
      paths.close();
    }
  }
}
