// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Device;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.memory.HostMemory;
import dev.gantry.core.internal.natives.Availability;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiFunction;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A session's files that are registered with the CUDA driver, so that kernels fetch rows from them.
///
/// Registering a file takes 27 ms a GB and pins its pages (measured on an H200 host), so it is done for
/// bytes that are read again: when a file has been read as often as it is long, and lies in the page cache
/// as a whole. A thread in the background does it; reads go on as before meanwhile.
///
/// Registered files take at most half of the memory that is available. The least recently used go when
/// others need the room, and a thread that runs while files are registered gives up what was not used for a
/// minute, and what the machine needs. Thread-safe.
public final class MappedFiles implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(MappedFiles.class);
  private static final long LOOK_MILLIS = 250;
  private static final long IDLE_NANOS = 60_000_000_000L;

  private final FileCalls calls;
  private final BiFunction<Location, CachePolicy, SourceFile> opener;
  private final LongSupplier availableBytes;

  /// In the order of their last use.
  private final Map<Location, Entry> entries = new LinkedHashMap<>(16, 0.75f, true);

  private final Map<Device.Cuda, GatherKernel> kernels = new ConcurrentHashMap<>();
  private final List<Thread> registering = new ArrayList<>();
  private long pinnedBytes;
  private @Nullable Thread watcher;
  private boolean closed;

  /// What is known of a file of one identity.
  private static final class Entry {
    final Object identity;
    final long size;
    long readBytes;
    int users;
    long usedNanos;
    boolean underWay;
    String refusal = "";
    @Nullable MappedFile mapped;

    Entry(SourceFile file) {
      identity = file.identity();
      size = file.size();
    }
  }

  /// @param opener opens a file to map
  public MappedFiles(FileCalls calls, BiFunction<Location, CachePolicy, SourceFile> opener) {
    this(calls, opener, () -> HostMemory.availableBytes().orElse(0));
  }

  MappedFiles(
      FileCalls calls,
      BiFunction<Location, CachePolicy, SourceFile> opener,
      LongSupplier availableBytes) {
    this.calls = calls;
    this.opener = opener;
    this.availableBytes = availableBytes;
  }

  /// Files from which a kernel may fetch until this is closed.
  public final class Lease implements AutoCloseable {
    private final Map<Location, MappedFile> files = new LinkedHashMap<>();

    private Lease() {}

    MappedFile file(Location location) {
      MappedFile file = files.get(location);
      if (file == null) {
        throw new IllegalStateException("not leased: " + location);
      }
      return file;
    }

    /// @throws dev.gantry.core.MalformedFileException if a file was changed in place
    void requireUnchanged() {
      files.values().forEach(MappedFile::requireUnchanged);
    }

    @Override
    public void close() {
      leave(files.keySet());
      files.clear();
    }
  }

  private synchronized void leave(Iterable<Location> locations) {
    for (Location location : locations) {
      Entry entry = entries.get(location);
      if (entry != null) {
        entry.users--;
        entry.usedNanos = System.nanoTime();
      }
    }
  }

  /// The files of a batch, if all of them are registered; else why not.
  ///
  /// @param files that are open, by their names, and how many bytes of each the batch wants
  /// @param now whether to register those that are not, instead of when it pays
  public Availability<Lease> lease(CudaContext context, Map<SourceFile, Long> files, boolean now) {
    Lease lease = new Lease();
    String absence = "";
    for (Map.Entry<SourceFile, Long> file : files.entrySet()) {
      Availability<MappedFile> mapped = enter(context, file.getKey(), file.getValue(), now);
      switch (mapped) {
        case Availability.Present<MappedFile>(MappedFile present) ->
            lease.files.put(present.location(), present);
        case Availability.Absent<MappedFile>(String reason) -> absence = reason;
      }
    }
    if (absence.isEmpty()) {
      return Availability.present(lease);
    }
    lease.close();
    return Availability.absent(absence);
  }

  private Availability<MappedFile> enter(
      CudaContext context, SourceFile file, long bytes, boolean now) {
    Entry entry;
    synchronized (this) {
      entry = entries.get(file.file());
      if (entry == null || (!entry.identity.equals(file.identity()) && entry.users == 0)) {
        drop(entry);
        entry = new Entry(file);
        entries.put(file.file(), entry);
      }
      if (!entry.identity.equals(file.identity())) {
        return Availability.absent(file.file() + " was replaced while it was read");
      }
      entry.readBytes += bytes;
      if (closed || (entry.underWay && !now) || !awaitEnd(entry)) {
        return Availability.absent("it is being registered");
      }
      if (entry.mapped != null) {
        entry.users++;
        return Availability.present(entry.mapped);
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
    Entry chosen = entry;
    if (now) {
      return register(context, file.file(), chosen, true);
    }
    start(() -> {
      Availability<MappedFile> _ = register(context, file.file(), chosen, false);
    });
    return Availability.absent("it is being registered");
  }

  /// Waits until a file is registered or refused.
  ///
  /// @return false if the caller is interrupted
  private synchronized boolean awaitEnd(Entry entry) {
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

  private synchronized void start(Runnable job) {
    registering.removeIf(thread -> !thread.isAlive());
    registering.add(Thread.ofPlatform().daemon().name("gantry-mapper").start(job));
  }

  /// Registers a file.
  ///
  /// @param asked whether the caller uses it at once: then it counts as one of its users
  private Availability<MappedFile> register(
      CudaContext context, Location location, Entry entry, boolean asked) {
    Availability<MappedFile> result = Availability.absent("registering it failed");
    try {
      result = map(context, location, entry, asked);
    } finally {
      result = keep(location, entry, asked, result);
    }
    switch (result) {
      case Availability.Absent<MappedFile>(String reason) -> LOG.info("{}: {}", location, reason);
      case Availability.Present<MappedFile> _ ->
          LOG.info(
              "{} is read again: the GPU fetches it from the page cache from now on", location);
    }
    return result;
  }

  private synchronized Availability<MappedFile> keep(
      Location location, Entry entry, boolean asked, Availability<MappedFile> result) {
    entry.underWay = false;
    notifyAll();
    switch (result) {
      case Availability.Absent<MappedFile>(String reason) -> entry.refusal = reason;
      case Availability.Present<MappedFile>(MappedFile mapped) -> {
        if (closed || entries.get(location) != entry) {
          mapped.close();
          return Availability.absent("no mapped: the session was closed, or the file replaced");
        }
        keep(entry, mapped);
        entry.users += asked ? 1 : 0;
      }
    }
    return result;
  }

  private synchronized void keep(Entry entry, MappedFile mapped) {
    entry.refusal = "";
    entry.mapped = mapped;
    entry.usedNanos = System.nanoTime();
    pinnedBytes += mapped.bytes();
    if (watcher == null) {
      watcher = Thread.ofPlatform().daemon().name("gantry-mapped").start(this::watch);
    }
  }

  private Availability<MappedFile> map(
      CudaContext context, Location location, Entry entry, boolean asked) {
    try {
      SourceFile file = opener.apply(location, CachePolicy.BUFFERED);
      return Cleanup.orUndo(
          () -> {
            String reason = refusal(context, file, entry, asked);
            if (reason.isEmpty()) {
              return Availability.present(new MappedFile(context, calls, file));
            }
            file.close();
            return Availability.absent(reason);
          },
          file::close);
    } catch (GantryException e) {
      return Availability.absent("no mapped: " + e.getMessage());
    }
  }

  private String refusal(CudaContext context, SourceFile file, Entry entry, boolean asked) {
    if (!entry.identity.equals(file.identity())) {
      return "no mapped: another file has taken its place";
    }
    if (file.descriptors().buffered() < 0) {
      return "no mapped: " + file.descriptors().absence();
    }
    if (!context.driver().pinsReadOnly(context.device().ordinal())) {
      return "no mapped: the driver registers no read-only memory";
    }
    if (file.size() == 0) {
      return "no mapped: the file is empty";
    }
    long resident = file.residentBytes();
    if (!asked && resident < file.size()) {
      return "no mapped: "
          + Math.max(0, resident)
          + " of "
          + file.size()
          + " bytes are in the page cache";
    }
    return makeRoom(file.size());
  }

  private synchronized String makeRoom(long bytes) {
    long most = availableBytes.getAsLong() / 2;
    dropUnused(most - bytes);
    return pinnedBytes + bytes <= most
        ? ""
        : "no mapped: it has "
            + bytes
            + " bytes; "
            + Math.max(0, most - pinnedBytes)
            + " may be registered now, which keeps half of the available memory free";
  }

  private synchronized void watch() {
    try {
      while (pinnedBytes > 0) {
        wait(LOOK_MILLIS);
        dropUnused(availableBytes.getAsLong() / 2);
        long now = System.nanoTime();
        for (Entry entry : entries.values()) {
          if (entry.users == 0 && now - entry.usedNanos > IDLE_NANOS) {
            drop(entry);
          }
        }
      }
    } catch (InterruptedException _) {
      // No code interrupts it.
    } finally {
      watcher = null;
    }
  }

  /// Unregisters the least recently used files that nothing reads until at most `most` bytes are left.
  private synchronized void dropUnused(long most) {
    for (Entry entry : List.copyOf(entries.values())) {
      if (pinnedBytes <= Math.max(0, most)) {
        return;
      }
      if (entry.users == 0) {
        drop(entry);
      }
    }
  }

  private synchronized void drop(@Nullable Entry entry) {
    if (entry != null && entry.mapped != null) {
      MappedFile dropped = entry.mapped;
      entry.mapped = null;
      entry.readBytes = 0;
      pinnedBytes -= dropped.bytes();
      notifyAll();
      dropped.close();
    }
  }

  /// Unregisters what nothing reads now, after waiting for what is being registered.
  public void freeIdle() {
    List<Thread> running;
    synchronized (this) {
      running = List.copyOf(registering);
    }
    running.forEach(MappedFiles::join);
    dropUnused(0);
  }

  GatherKernel kernel(CudaContext context) {
    return kernels.computeIfAbsent(context.device(), _ -> new GatherKernel(context));
  }

  /// Every lease must be closed.
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
    }
    Cleanup.runAll(
        List.of(
            this::freeIdle,
            () ->
                Cleanup.runAll(
                    kernels.values().stream().<Runnable>map(kernel -> kernel::close).toList())));
    kernels.clear();
    Thread watching = watcher();
    if (watching != null) {
      join(watching);
    }
  }

  private synchronized @Nullable Thread watcher() {
    return watcher;
  }

  private static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      try {
        thread.join();
      } catch (InterruptedException _) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
