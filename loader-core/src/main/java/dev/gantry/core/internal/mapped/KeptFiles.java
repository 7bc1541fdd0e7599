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
import java.util.ArrayList;
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

/// Keeps files of a session in memory, so that batches are gathered from them: registered with the CUDA driver
/// for its kernels, or copied for the CPU.
///
/// Registering a file takes 27 ms a GB and pins its pages (measured on an H200 host), and copying it takes
/// memory. So a file is kept only if it is read again: once batches have read as many bytes as it has. To be
/// registered, a file must be in the page cache as a whole. A thread in the background registers and copies;
/// meanwhile, batches are read as before.
///
/// A session's kept files, together with what all processes of the user have registered, take at most half of
/// the available memory. The least recently used files are given up when others need the room. An [IdleWatch]
/// gives up files that were not used for a minute, and files whose memory the machine needs. Thread-safe.
public final class KeptFiles implements AutoCloseable {
  private static final long IDLE_NANOS = 60_000_000_000L;

  /// How many files are remembered, with how much of each was read. Kept files are remembered beyond this, too.
  private static final int MAX_ENTRIES = 16_384;

  /// The answer if keeping a file throws; made in advance, since there may be no memory then.
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
  private final AtomicBoolean toldKept = new AtomicBoolean();
  private boolean closed;

  /// @param copied whether the file is copied for the CPU, and not registered for kernels
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
  /// @param availableBytes gives the bytes of available memory, including those that are registered
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

  /// Files that stay kept until this is closed, so that a kernel or the CPU may copy from them.
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

  /// @param outdated whether the file may serve no other batch
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
  /// @param copied whether to look for files copied for the CPU, and not for those registered for kernels
  public synchronized boolean keepsAny(boolean copied) {
    return entries.entrySet().stream()
        .anyMatch(entry -> entry.getKey().copied() == copied && entry.getValue().kept != null);
  }

  /// Returns the files of a batch, if all of them are kept; else why not.
  ///
  /// @param context the device whose kernels gather, or null for the CPU
  /// @param files the open files, and how many bytes of each the batch wants
  /// @param now whether to keep the other files at once, instead of when they are read again
  public Availability<Lease> lease(
      @Nullable CudaContext context, Map<SourceFile, Long> files, boolean now) {
    Lease lease = new Lease(context == null);
    String absence = Cleanup.orUndo(() -> add(lease, context, files, now), lease::close);
    if (absence.isEmpty()) {
      return Availability.present(lease);
    }
    lease.close();
    return Availability.absent(absence);
  }

  /// @return why not all of the files are kept; empty if they are
  private String add(
      Lease lease, @Nullable CudaContext context, Map<SourceFile, Long> files, boolean now) {
    String absence = "";
    for (Map.Entry<SourceFile, Long> file : files.entrySet()) {
      Key key = new Key(file.getKey().file(), lease.copied);
      switch (enter(context, key, file.getKey(), file.getValue(), now)) {
        case Availability.Present<KeptFile>(KeptFile present) -> {
          lease.files.put(key, present);
          if (lease.copied && !file.getKey().isUnchanged()) {
            // The copy is outdated, so the batch is read: reads bring what is in the file now.
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
        entry.leaving = false;
        entry.users++;
        return Availability.present(entry.kept);
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
    return Cleanup.orUndo(
        () -> {
          keeper.start(() -> {
            Availability<KeptFile> _ = keep(context, key, entry, false);
          });
          return Availability.absent(key.copied ? "it is being copied" : "it is being registered");
        },
        () -> endKeeping(entry));
  }

  /// Forgets the least recently used files that are not kept, until there is room for one more.
  private synchronized void forgetOne() {
    Iterator<KeptEntry> all = entries.values().iterator();
    while (entries.size() >= mostEntries && all.hasNext()) {
      KeptEntry eldest = all.next();
      if (eldest.kept == null && eldest.users == 0 && !eldest.underWay) {
        all.remove();
      }
    }
  }

  private synchronized void endKeeping(KeptEntry entry) {
    entry.underWay = false;
    notifyAll();
  }

  /// Waits until a file is kept or refused.
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
  /// @param asked whether the caller uses the file at once: then the caller counts as one of its users
  private Availability<KeptFile> keep(
      @Nullable CudaContext context, Key key, KeptEntry entry, boolean asked) {
    Availability<KeptFile> result = FAILED;
    try {
      result = maker.make(context, key.file, entry.identity, asked);
    } finally {
      result = keep(key, entry, asked, result);
    }
    boolean used = asked && result instanceof Availability.Present;
    Cleanup.orUndo(
        dropped::closeAll,
        () -> {
          if (used) {
            leave(key, false);
          }
        });
    switch (result) {
      case Availability.Absent<KeptFile>(String reason) ->
          LoggerFactory.getLogger(KeptFiles.class).info("{}: {}", key.file, reason);
      case Availability.Present<KeptFile> _ ->
          // A dataset has many files, so only the first one that is kept is logged as news.
          LoggerFactory.getLogger(KeptFiles.class)
              .atLevel(toldKept.compareAndSet(false, true) ? Level.INFO : Level.DEBUG)
              .log(
                  "{} is read again: {} from now on",
                  key.file,
                  key.copied
                      ? "a copy in memory serves"
                      : "the GPU fetches it from the page cache");
    }
    return result;
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
        IdleWatch.watch(look);
      }
    }
    return result;
  }

  /// @param counted how many of the bytes count as registered already
  /// @return why there is no room; empty if there is
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

  /// Returns the most bytes that this session may keep: half of what is available, less what others have registered.
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
    for (KeptEntry entry : List.copyOf(entries.values())) {
      if (keptBytes <= Math.max(0, most)) {
        return;
      }
      if (entry.users == 0) {
        drop(entry);
      }
    }
  }

  /// Marks used files that must go when their batches are done. Batches in random order use all files all the
  /// time, so no file would ever be unused.
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
      entry.kept = null;
      entry.leaving = false;
      entry.readBytes = 0;
    }
  }

  /// Gives up all files that no batch uses, after waiting for those that are being registered or copied.
  public void freeIdle() {
    awaitKept();
    dropUnused(0);
    // Batches that close files do not wait for these, as they would for those that await closes.
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
    List<Runnable> actions = new ArrayList<>(List.of(this::freeIdle, keeper::close));
    kernels.values().forEach(kernel -> actions.add(kernel::close));
    Cleanup.runAll(actions);
    kernels.clear();
  }

  private synchronized boolean isClosed() {
    return closed;
  }
}
