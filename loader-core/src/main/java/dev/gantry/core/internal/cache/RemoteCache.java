// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.GantryException;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.Pool;
import dev.gantry.core.internal.memory.Slab;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.FileCache;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.net.URI;
import java.nio.file.Path;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/// A cache of remote files in a folder on a disk of this machine: see `docs/cache.md`. A store
/// that keeps its files where other programs find them has a cache of its own, with a [BlobPlace].
///
/// A cached file is identified by its location and version, so a changed remote file becomes a new
/// cached file. If the disk is full or fails, reads go on without the cache, which is logged once.
/// Thread-safe.
public final class RemoteCache implements FileCache {
  private static final Logger LOG = LoggerFactory.getLogger(RemoteCache.class);

  /// How many threads compute checksums and write fetched blocks to the disk. One thread handles 1
  /// to 2 GB/s.
  private static final int THREADS = Math.clamp(Runtime.getRuntime().availableProcessors(), 4, 16);

  private static final long IDLE_SECONDS = 10;
  private static final long MAX_BUFFERS_BYTES = 32L << 20;
  private static final int MAX_KNOWN = 65_536;

  /// The errors of a process or system that has no descriptor left.
  private static final Set<String> NO_DESCRIPTOR = Set.of("EMFILE", "ENFILE");

  private final FileCalls calls;

  /// The folder and its bound; null if a [BlobPlace] names the files.
  private final @Nullable CacheSettings settings;

  private final @Nullable EntryFolder files;

  /// Buffers for blocks of which a read wants only a part. The garbage collector frees them.
  private final Pool<MemorySegment> buffers =
      new Pool<>(IDLE_SECONDS, () -> MAX_BUFFERS_BYTES, _ -> {});

  private final ThreadPoolExecutor threads = threads("gantry-cache-", THREADS);

  /// The thread that synchronises whole files, so that no read waits for the disk.
  private final ThreadPoolExecutor syncing = threads("gantry-cache-sync-", 1);

  private final Map<String, CachedFile> open = new HashMap<>();
  private final AtomicBoolean warned = new AtomicBoolean();
  private final AtomicBoolean warnedOfSize = new AtomicBoolean();
  private volatile boolean mayPut = true;

  /// Cancelled by [#close].
  private final Cancellation closing = new Cancellation();

  /// The versions that files had when they were last opened.
  private final Map<URI, WholeFile.Version> known =
      Collections.synchronizedMap(
          new LinkedHashMap<>(16, 0.75f, true) {
            @Override
            protected boolean removeEldestEntry(Map.Entry<URI, WholeFile.Version> eldest) {
              return size() > MAX_KNOWN;
            }
          });

  /// The files of a cache's folder, their size, and its bound.
  ///
  /// @param files how many files are in the folder
  /// @param bytes how many bytes the files take; each counts with its whole size
  /// @param mostBytes how many bytes the files may take
  public record Use(Path folder, long files, long bytes, long mostBytes) {}

  public RemoteCache(FileCalls calls, CacheSettings settings) {
    this(calls, settings, () -> new CacheFolder(calls, settings.folder(), settings.mostBytes()));
  }

  public RemoteCache(FileCalls calls, BlobPlace place) {
    this(calls, null, () -> new BlobFolder(calls, place));
  }

  private RemoteCache(
      FileCalls calls, @Nullable CacheSettings settings, Supplier<? extends EntryFolder> folder) {
    this.calls = calls;
    this.settings = settings;
    files = made(folder);
  }

  private static ThreadPoolExecutor threads(String name, int count) {
    ThreadPoolExecutor made =
        new ThreadPoolExecutor(
            count,
            count,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().daemon().name(name, 0).factory());
    made.allowCoreThreadTimeOut(true);
    return made;
  }

  /// Whether this cache was made with these settings.
  public boolean isOf(CacheSettings chosen) {
    return chosen.equals(settings);
  }

  private @Nullable EntryFolder made(Supplier<? extends EntryFolder> folder) {
    try {
      return folder.get();
    } catch (GantryException e) {
      refuse(e);
      return null;
    }
  }

  /// Counts the files in the folder, including those of other processes.
  ///
  /// @throws dev.gantry.core.TransferException if the folder cannot be listed
  public Use use() {
    CacheSettings bound = Objects.requireNonNull(settings);
    return files instanceof CacheFolder folder
        ? folder.use()
        : new Use(bound.folder(), 0, 0, bound.mostBytes());
  }

  @Override
  public StoredFile open(
      Location.Remote file, CachePolicy policy, Supplier<StoredFile> openRemote) {
    if (files == null) {
      return openRemote.get();
    }
    WholeFile.Version seen = known.get(file.uri());
    if (seen != null && seen.identity().equals(file.version())) {
      StoredFile whole = cached(seen, policy, null, openRemote);
      if (whole != null) {
        return whole;
      }
    }
    return Cleanup.orUndo(
        openRemote,
        remote -> {
          String version = remote.version();
          boolean isKept = remote instanceof LocalFile || remote instanceof FileCache.Filling;
          if (isKept
              || version.isEmpty()
              || remote.size() == 0
              || remote.size() > CacheEntry.MAX_BYTES) {
            return remote;
          }
          WholeFile.Version found =
              new WholeFile.Version(
                  file, remote.identity(), version, remote.size(), remote.modified());
          known.put(file.uri(), found);
          StoredFile cached = cached(found, policy, remote, openRemote);
          if (cached instanceof WholeFile) {
            remote.close();
          }
          return cached == null ? remote : cached;
        },
        StoredFile::close);
  }

  /// Opens a file out of the cache.
  ///
  /// @param remote the file in its store, from which missing blocks are fetched; null if only a
  ///     whole cached file is wanted
  /// @param openRemote opens the remote file again
  /// @return null if the cache does not serve the file
  private @Nullable StoredFile cached(
      WholeFile.Version version,
      CachePolicy policy,
      @Nullable StoredFile remote,
      Supplier<StoredFile> openRemote) {
    EntryFolder folder = files;
    if (folder == null) {
      return null;
    }
    CachedFile cached = acquire(folder, folder.key(version), version.size(), remote != null);
    if (cached == null) {
      warnOfSize(version);
      return null;
    }
    boolean filling = false;
    try {
      if (cached.isWhole()) {
        return local(cached, policy, version, openRemote);
      }
      StoredFile made =
          remote == null ? null : new FillingFile(this, remote, cached, version, openRemote);
      filling = made != null;
      return made;
    } catch (GantryException e) {
      refuse(e);
      return null;
    } finally {
      if (!filling) {
        leave(cached);
      }
    }
  }

  /// Warns if a file is larger than the cache's bound: the user may have given the bound in a
  /// wrong unit.
  private void warnOfSize(WholeFile.Version version) {
    long bytes = CacheEntry.cost(version.size());
    if (settings != null
        && bytes > settings.mostBytes()
        && warnedOfSize.compareAndSet(false, true)) {
      LOG.warn(
          "{} is read past the cache: it takes {} bytes, and the cache may take {}",
          version.file(),
          bytes,
          settings.mostBytes());
    }
  }

  /// @param make whether to make an entry if there is none
  /// @return null if there is no entry, or no space for one; otherwise the caller must call
  ///     [#leave] with the file
  private synchronized @Nullable CachedFile acquire(
      EntryFolder folder, String key, long size, boolean make) {
    CachedFile shared = open.get(key);
    if (shared != null) {
      return shared.share();
    }
    try {
      Optional<CachedFile> opened =
          Cleanup.orUndo(
              () -> make && mayPut ? folder.open(key, size) : folder.find(key, size),
              entry -> Optional.ofNullable(entry).map(each -> opened(key, folder, each)),
              CacheEntry::closeIfThere);
      return opened.orElse(null);
    } catch (GantryException e) {
      refuse(e);
      return null;
    }
  }

  private CachedFile opened(String key, EntryFolder folder, CacheEntry entry) {
    CachedFile opened = new CachedFile(key, folder, entry);
    if (opened.isWhole()) {
      // The process that sealed the file may have been killed before it told the folder.
      folder.sealed(key);
    }
    open.put(key, opened);
    return opened;
  }

  private synchronized CachedFile share(CachedFile file) {
    return file.share();
  }

  void leave(CachedFile file) {
    synchronized (this) {
      if (!file.leave()) {
        return;
      }
      open.remove(file.key());
    }
    file.close();
  }

  /// Opens a whole cached file.
  ///
  /// @param openRemote opens the remote file, for reads on which the disk fails
  LocalFile local(
      CachedFile file,
      CachePolicy policy,
      WholeFile.Version version,
      Supplier<StoredFile> openRemote) {
    return Cleanup.orUndo(
        () ->
            Cleanup.orUndo(
                () -> share(file),
                shared -> new WholeFile(this, shared, calls, policy, version, openRemote),
                this::leave),
        whole -> {
          if (!file.isDataOf(whole.onDisk())) {
            throw new MisuseException(
                file.entry().data() + " was replaced or modified while it was in use");
          }
          return whole;
        },
        WholeFile::close);
  }

  /// Takes memory for one block; [#giveBack] returns it.
  MemorySegment takeBuffer() {
    MemorySegment idle = buffers.take(CacheEntry.BLOCK_BYTES);
    return idle == null
        ? Arena.ofAuto().allocate(CacheEntry.BLOCK_BYTES, Slab.ALIGNMENT_BYTES)
        : idle;
  }

  void giveBack(@Nullable MemorySegment buffer) {
    if (buffer != null) {
      buffers.keep(buffer, buffer.byteSize());
    }
  }

  boolean mayPut() {
    return mayPut;
  }

  /// Stops writing to the cache, since the disk is full or fails. A lack of descriptors, which may
  /// pass, and a cancellation do not stop the writing.
  public void refuse(GantryException reason) {
    if (reason instanceof TransferException failed
        && (failed.isErrno(NO_DESCRIPTOR) || failed.failure() instanceof Failure.Cancelled)) {
      return;
    }
    mayPut = false;
    if (warned.compareAndSet(false, true)) {
      LOG.warn("remote files are read past the cache: {}", reason.getMessage());
    }
  }

  void settle(CachedFile file, int block, boolean good) {
    if (file.settle(block, good)) {
      Runnable seal = () -> seal(file);
      CachedFile _ = share(file);
      run(syncing, seal);
    }
  }

  private void seal(CachedFile file) {
    try {
      file.seal();
    } catch (GantryException e) {
      refuse(e);
    } catch (OutOfMemoryError _) {
      // The file does not count as whole, and is removed when nothing has it open any more.
    } finally {
      leave(file);
    }
  }

  /// Runs `work` on a thread of the cache. If these threads have ended with their session, or none can be
  /// started, `work` runs on this thread, since a read that is under way must still end.
  void run(Runnable work) {
    run(threads, work);
  }

  private static void run(ThreadPoolExecutor threads, Runnable work) {
    try {
      threads.execute(work);
    } catch (RejectedExecutionException | OutOfMemoryError _) {
      work.run();
    }
  }

  /// Whether the cache is being closed, so that reads which wait for other readers or processes
  /// must fail.
  boolean isClosing() {
    return closing.isCancelled();
  }

  /// Has `action` run once when the cache is closed.
  ///
  /// @return makes the cache forget the action
  Runnable whenClosing(Runnable action) {
    return closing.whenCancelled(action);
  }

  /// Fails the reads that wait for another process, waits for files that are being synchronised, then ends the cache's
  /// threads.
  @Override
  public void close() {
    closing.cancel();
    for (ThreadPoolExecutor each : List.of(threads, syncing)) {
      each.shutdown();
      Cleanup.awaitEnd(each);
    }
    buffers.free();
  }
}
