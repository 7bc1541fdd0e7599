// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.memory.IdleWatch;
import dev.gantry.core.internal.memory.RegisteredPages;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BiFunction;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.slf4j.event.Level;

/// Keeps files of a session in memory, so that batches are gathered from them. Files for kernels
/// are registered with the CUDA driver; files for the CPU are copied.
///
/// Registering a file takes 27 ms a GB and pins its pages (measured on an H200 host), and copying
/// it takes memory. Therefore a file is kept only if it is read again: after batches have read as
/// many bytes as the file has. To be registered, a file must be wholly in the page cache. A
/// background thread registers and copies files; meanwhile, batches are read as before.
///
/// A session's kept files, together with what all processes of the user have registered, take at
/// most half of the available memory. The least recently used files are given up when other files
/// need the memory. An [IdleWatch] gives up files that were not used for a minute, and files whose
/// memory the machine needs; a promise of [HostMemory] has files given up that no batch uses.
/// Thread-safe.
public final class KeptFiles implements AutoCloseable, HostMemory.Keeper {
  private static final long IDLE_NANOS = 60_000_000_000L;

  /// How many files are remembered, with the number of bytes that were read of each. Kept files
  /// are remembered even beyond this number.
  private static final int MAX_ENTRIES = 16_384;

  /// The answer if keeping a file throws. It is made in advance, since the heap may be full then.
  private static final Availability<KeptFile> FAILED = Availability.absent("keeping it failed");

  private final FileMaker maker;
  private final RegisteredPages registered;
  private final LongSupplier availableBytes;
  private final int mostEntries;

  /// The remembered files, in the order of their last use.
  private final Map<Key, KeptEntry> entries = new LinkedHashMap<>(16, 0.75f, true);

  private final Map<Device.Cuda, GatherKernel> kernels = new ConcurrentHashMap<>();

  private final FileKeeper keeper = new FileKeeper();
  private long keptBytes;

  private final ClosingFiles dropped = new ClosingFiles();
  private final BooleanSupplier look = this::look;
  private final AtomicBoolean loggedKept = new AtomicBoolean();
  private boolean closed;

  /// Made with this object, so that closing it needs no heap.
  private final List<Runnable> closing = List.of(this::freeIdle, keeper::close, this::closeKernels);

  /// @param copied true for a file that is copied for the CPU, false for one that is registered
  ///     for kernels
  private record Key(Location file, boolean copied) {}

  /// @param opener opens a file
  public KeptFiles(FileCalls calls, BiFunction<Location, CachePolicy, SourceFile> opener) {
    this(
        calls,
        opener,
        RegisteredPages.OF_USER,
        () -> HostMemory.availableBytes().orElse(0) + RegisteredPages.OF_USER.bytes(),
        MAX_ENTRIES);
  }

  /// @param registered counts the pages that all sessions and processes have registered
  /// @param availableBytes returns the bytes of available memory, including registered pages
  KeptFiles(
      FileCalls calls,
      BiFunction<Location, CachePolicy, SourceFile> opener,
      RegisteredPages registered,
      LongSupplier availableBytes,
      int mostEntries) {
    this.maker = new FileMaker(calls, opener, registered, this::makeRoom, this::isClosed);
    this.registered = registered;
    this.availableBytes = availableBytes;
    this.mostEntries = mostEntries;
  }

  /// Files that stay kept until the lease is closed, so that a kernel or the CPU may copy from
  /// them.
  public final class Lease implements AutoCloseable {
    private final Map<Key, KeptFile> files = new LinkedHashMap<>();

    private final boolean copied;

    private Lease(boolean copied) {
      this.copied = copied;
    }

    KeptFile file(Location location) {
      KeptFile file = files.get(new Key(location, copied));
      if (file == null) {
        throw new IllegalStateException("not leased: " + location);
      }
      return file;
    }

    /// @throws dev.gantry.core.MalformedFileException if a file was changed in place
    void requireUnchanged() {
      files.values().forEach(KeptFile::requireUnchanged);
    }

    @Override
    public void close() {
      for (Key key : files.keySet()) {
        leave(key, false);
      }
      files.clear();
      dropped.closeAll();
    }
  }

  /// @param outdated whether no other batch may use the kept file
  private synchronized void leave(Key key, boolean outdated) {
    KeptEntry entry = entries.get(key);
    if (entry != null) {
      entry.users--;
      entry.usedNanos = System.nanoTime();
      if ((entry.leaving || outdated) && entry.users == 0) {
        drop(entry);
      }
    }
  }

  /// Whether any file is kept.
  ///
  /// @param copied true for files that are copied for the CPU, false for files that are registered
  ///     for kernels
  public synchronized boolean keepsAny(boolean copied) {
    return entries.entrySet().stream()
        .anyMatch(entry -> entry.getKey().copied() == copied && entry.getValue().kept != null);
  }

  /// Returns a lease of a batch's files if all of them are kept; otherwise absent with the reason.
  ///
  /// @param context the device whose kernels gather, or null for the CPU
  /// @param files the open files, and how many bytes the batch reads of each
  /// @param now whether to keep files that are not kept yet at once, instead of when they are read
  ///     again
  public Availability<Lease> lease(
      @Nullable CudaContext context, Map<SourceFile, Long> files, boolean now) {
    Lease lease = new Lease(context == null);
    Availability<Lease> whole = Availability.present(lease);
    String absence = Cleanup.orUndo(() -> add(lease, context, files, now), lease::close);
    if (absence.isEmpty()) {
      return whole;
    }
    lease.close();
    return Availability.absent(absence);
  }

  /// @return the reason why some file is not kept; empty if all are
  private String add(
      Lease lease, @Nullable CudaContext context, Map<SourceFile, Long> files, boolean now) {
    String absence = "";
    for (Map.Entry<SourceFile, Long> file : files.entrySet()) {
      Key key = new Key(file.getKey().file(), lease.copied);
      switch (enter(context, key, file.getKey(), file.getValue(), now)) {
        case Availability.Present<KeptFile>(KeptFile present) -> {
          lease.files.put(key, present);
          if (lease.copied && !file.getKey().isUnchanged()) {
            // The copy is outdated, so this batch is read from the file, as it is now.
            lease.files.remove(key);
            leave(key, true);
            absence = present.location() + " was modified since it was copied";
          }
        }
        case Availability.Absent<KeptFile>(String reason) -> absence = reason;
      }
    }
    return absence;
  }

  private Availability<KeptFile> enter(
      @Nullable CudaContext context, Key key, SourceFile file, long bytes, boolean now) {
    KeptEntry entry;
    synchronized (this) {
      entry = entries.get(key);
      if (entry == null || (!entry.identity.equals(file.identity()) && entry.users == 0)) {
        drop(entry);
        forgetOne();
        entry = new KeptEntry(file);
        entries.put(key, entry);
      }
      if (!entry.identity.equals(file.identity())) {
        return Availability.absent(file.file() + " was replaced while it was read");
      }
      if (!file.isLocal()) {
        return entry.remote(file);
      }
      entry.readBytes += bytes;
      if (closed || (entry.underWay && !now) || !awaitEnd(entry)) {
        return Availability.absent(key.copied ? "it is being copied" : "it is being registered");
      }
      if (entry.leaving && !now) {
        return Availability.absent("it is being given up: the machine needs the memory");
      }
      if (entry.kept != null) {
        Availability<KeptFile> present = Availability.present(entry.kept);
        entry.leaving = false;
        entry.users++;
        return present;
      }
      if (!now && entry.readBytes < entry.size) {
        return Availability.absent("not read again yet");
      }
      if (!now && !entry.refusal.isEmpty() && entry.readBytes < 2 * entry.size) {
        return Availability.absent(entry.refusal);
      }
      entry.underWay = true;
      entry.readBytes = 0;
    }
    return now ? keep(context, key, entry, true) : keepLater(context, key, entry);
  }

  private Availability<KeptFile> keepLater(
      @Nullable CudaContext context, Key key, KeptEntry entry) {
    boolean started = false;
    try {
      keeper.start(() -> {
        Availability<KeptFile> _ = keep(context, key, entry, false);
      });
      started = true;
    } finally {
      if (!started) {
        // Nothing else would end it, and callers that need the file now would wait for ever.
        endKeeping(entry);
      }
    }
    return Availability.absent(key.copied ? "it is being copied" : "it is being registered");
  }

  /// Forgets the least recently used files that are not kept, until one more may be remembered.
  private synchronized void forgetOne() {
    Iterator<KeptEntry> all = entries.values().iterator();
    while (entries.size() >= mostEntries && all.hasNext()) {
      KeptEntry eldest = all.next();
      if (eldest.kept == null && !eldest.underWay) {
        all.remove();
      }
    }
  }

  private synchronized void endKeeping(KeptEntry entry) {
    entry.underWay = false;
    notifyAll();
  }

  /// Waits until the thread that registers or copies a file has ended.
  ///
  /// @return false if the caller is interrupted
  private synchronized boolean awaitEnd(KeptEntry entry) {
    try {
      while (entry.underWay) {
        wait();
      }
      return true;
    } catch (InterruptedException _) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /// Registers or copies a file.
  ///
  /// @param asked whether the caller uses the file at once; the caller then counts as a user of
  ///     the file
  private Availability<KeptFile> keep(
      @Nullable CudaContext context, Key key, KeptEntry entry, boolean asked) {
    Availability<KeptFile> result = FAILED;
    try {
      result = maker.make(context, key.file, entry.identity, asked);
    } finally {
      result = keep(key, entry, asked, result);
    }
    boolean done = false;
    try {
      dropped.closeAll();
      log(key, result);
      done = true;
    } finally {
      if (!done && asked && result instanceof Availability.Present) {
        leave(key, false);
      }
    }
    return result;
  }

  private void log(Key key, Availability<KeptFile> result) {
    switch (result) {
      case Availability.Absent<KeptFile>(String reason) ->
          LoggerFactory.getLogger(KeptFiles.class).info("{}: {}", key.file, reason);
      case Availability.Present<KeptFile> _ ->
          // A dataset has many files, so only the first kept file is logged at level INFO.
          LoggerFactory.getLogger(KeptFiles.class)
              .atLevel(loggedKept.compareAndSet(false, true) ? Level.INFO : Level.DEBUG)
              .log(
                  "{} is read again: {} from now on",
                  key.file,
                  key.copied
                      ? "a copy in memory serves"
                      : "the GPU fetches it from the page cache");
    }
  }

  private synchronized Availability<KeptFile> keep(
      Key key, KeptEntry entry, boolean asked, Availability<KeptFile> result) {
    endKeeping(entry);
    switch (result) {
      case Availability.Absent<KeptFile>(String reason) -> entry.refusal = reason;
      case Availability.Present<KeptFile>(KeptFile kept) -> {
        if (closed || entries.get(key) != entry) {
          dropped.add(kept);
          return Availability.absent("not kept: the session was closed, or the file replaced");
        }
        entry.refusal = "";
        entry.kept = kept;
        entry.usedNanos = System.nanoTime();
        entry.users += asked ? 1 : 0;
        keptBytes += kept.bytes();
        HostMemory.add(this);
        IdleWatch.watch(look);
      }
    }
    return result;
  }

  /// @param counted how many of these bytes count as registered already
  /// @return the reason why the bytes do not fit; empty if they do
  private String makeRoom(long bytes, long counted) {
    long most = mostBytes() + counted;
    dropUnused(most - bytes);
    dropped.closeAll();
    long left = most - keptBytes();
    return bytes <= left
        ? ""
        : "not kept: it has "
            + bytes
            + " bytes; "
            + Math.max(0, left)
            + " may be kept now, which leaves half of the available memory free";
  }

  /// Returns the most bytes that this session may keep: half of the available memory, less the
  /// bytes that other sessions and processes have registered.
  private long mostBytes() {
    return availableBytes.getAsLong() / 2 - registered.bytes() + registeredHere();
  }

  private synchronized long registeredHere() {
    return entries.values().stream()
        .mapToLong(entry -> entry.kept instanceof MappedFile mapped ? mapped.bytes() : 0)
        .sum();
  }

  synchronized int entries() {
    return entries.size();
  }

  private synchronized long keptBytes() {
    return keptBytes;
  }

  private boolean look() {
    boolean left = look(mostBytes());
    dropped.closeAll();
    return left;
  }

  /// Gives up files that were not used for long, and files whose memory the machine needs.
  ///
  /// @return whether any file is still kept
  private synchronized boolean look(long most) {
    dropUnused(most);
    letUsedLeave(most);
    long now = System.nanoTime();
    for (KeptEntry entry : entries.values()) {
      if (entry.users == 0 && now - entry.usedNanos > IDLE_NANOS) {
        drop(entry);
      }
    }
    return keptBytes > 0;
  }

  /// Gives up the least recently used files that no batch uses, until at most `most` bytes are kept.
  private synchronized void dropUnused(long most) {
    for (KeptEntry entry : entries.values()) {
      if (keptBytes <= Math.max(0, most)) {
        return;
      }
      if (entry.users == 0) {
        drop(entry);
      }
    }
  }

  /// Marks files in use that must be given up when their current batches are done. Batches in
  /// random order use all files all the time, so without the marks no file would ever be unused.
  private synchronized void letUsedLeave(long most) {
    long staying = keptBytes;
    for (KeptEntry entry : entries.values()) {
      KeptFile kept = entry.kept;
      entry.leaving = kept != null && entry.users > 0 && staying > Math.max(0, most);
      staying -= kept != null && entry.leaving ? kept.bytes() : 0;
    }
  }

  private synchronized void drop(@Nullable KeptEntry entry) {
    if (entry != null && entry.kept != null) {
      dropped.add(entry.kept);
      keptBytes -= entry.kept.bytes();
      if (keptBytes == 0) {
        HostMemory.remove(this);
      }
      entry.kept = null;
      entry.leaving = false;
      entry.readBytes = 0;
    }
  }

  @Override
  public synchronized long unusedBytes() {
    long unused = 0;
    for (KeptEntry entry : entries.values()) {
      unused += entry.users == 0 && entry.kept != null ? entry.kept.bytes() : 0;
    }
    return unused;
  }

  @Override
  public void giveUp(long bytes) {
    dropUnused(keptBytes() - bytes);
    dropped.closeAll();
    dropped.await();
  }

  /// Waits for files that are being registered or copied, then gives up all files that no batch
  /// uses.
  public void freeIdle() {
    awaitKept();
    dropUnused(0);
    // The files are closed here first, under the read lock: [ClosingFiles#await] would close them
    // under the write lock, and batches that close files would have to wait.
    dropped.closeAll();
    dropped.await();
  }

  /// Waits until no file is being registered or copied.
  void awaitKept() {
    keeper.await();
  }

  GatherKernel kernel(CudaContext context) {
    return kernels.computeIfAbsent(context.device(), _ -> new GatherKernel(context));
  }

  /// Gives up all files. Every lease must be closed before.
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    Cleanup.runAll(closing);
  }

  private void closeKernels() {
    Cleanup.forEach(kernels.values(), GatherKernel::close);
    kernels.clear();
  }

  private synchronized boolean isClosed() {
    return closed;
  }
}
