// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Cancellation;
import dev.gantry.core.Failure;
import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.Cleanup;
import dev.gantry.core.internal.memory.LiveResources;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls.StatResult;
import dev.gantry.core.internal.natives.JdkFiles;
import dev.gantry.core.spi.Descriptors;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.Residency;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/// An open file of any store, as transports use it. For operations that the store does not offer,
/// it supplies a substitute.
///
/// Thread-safe, but [#close] may be called only when no read is under way.
public final class SourceFile implements AutoCloseable {
  /// The most bytes of one request to a remote file; a larger read takes several requests.
  private static final long REQUEST_BYTES = 8L << 20;

  private final Location file;
  private final StoredFile stored;
  private final @Nullable LocalFile local;
  private final LinkWindow link;
  private final Cancellation ended = new Cancellation();
  private final AtomicBoolean closed = new AtomicBoolean();

  /// Identifies a local file and its state, to find out whether a file that is opened again has
  /// the same bytes. A change that keeps all four values goes unnoticed.
  ///
  /// @param device the device that has the file: its major number in the upper half, its minor
  ///     number in the lower half
  /// @param inode the file's number on that device
  /// @param size in bytes
  /// @param modifiedNanos when the file was modified, in nanoseconds since 1970
  public record Identity(long device, long inode, long size, long modifiedNanos) {
    static Identity of(StatResult found) {
      return new Identity(found.device(), found.inode(), found.size(), found.modifiedNanos());
    }

    /// Returns the identity of the file that has a name now, without opening the file.
    ///
    /// @throws dev.gantry.core.TransferException if no file has the name
    public static Identity look(Path file) {
      StatResult found = JdkFiles.stat(file);
      Errno.check(found.status(), "stat", file);
      return of(found);
    }

    /// This method is written by hand, because the JVM generates a record's `equals` at its first
    /// call, which takes 10 ms of each process's first load.
    @Override
    public boolean equals(@Nullable Object other) {
      return other instanceof Identity that
          && device == that.device
          && inode == that.inode
          && size == that.size
          && modifiedNanos == that.modifiedNanos;
    }

    @Override
    public int hashCode() {
      return 31 * Long.hashCode(inode) + Long.hashCode(modifiedNanos);
    }
  }

  /// @param stored the store's file; [#close] closes it
  public SourceFile(Location file, StoredFile stored) {
    this(file, stored, new LinkWindow());
  }

  /// @param link the window of the link to a remote file's server
  SourceFile(Location file, StoredFile stored, LinkWindow link) {
    this.file = file;
    this.link = link;
    this.stored = stored;
    this.local = stored instanceof LocalFile present ? present : null;
    LiveResources.add(LiveResources.Kind.OPEN_FILES, 1);
  }

  public Location file() {
    return file;
  }

  /// The file's size in bytes when it was opened.
  public long size() {
    return stored.size();
  }

  /// The same as [StoredFile#identity].
  public Object identity() {
    return stored.identity();
  }

  /// The same as [StoredFile#version].
  public String version() {
    return stored.version();
  }

  /// The same as [StoredFile#modified].
  public Optional<Instant> modified() {
    return stored.modified();
  }

  /// @throws TransferException if the file had fewer than `bytes` when it was opened
  public void checkHolds(long bytes) {
    if (size() < bytes) {
      throw new TransferException(
          "open",
          file + ", whose " + size() + " bytes end before offset " + bytes,
          new Failure.EndOfFile(bytes - size()));
    }
  }

  /// Returns whether a local file is still in the state that it had when it was opened, so that
  /// all bytes that were read belong to this state. Reads of a remote file check this themselves.
  /// Two changes within a tick of the kernel's clock (some milliseconds) look like one.
  public boolean isUnchanged() {
    return !(stored instanceof PosixFile present) || present.isUnchanged();
  }

  /// @throws MalformedFileException of kind `changed-meanwhile` if a local file was changed in place since it was opened
  public void requireUnchanged() {
    if (!isUnchanged()) {
      throw new MalformedFileException(
          file, 0, "changed-meanwhile", "it was modified while it was read");
    }
  }

  /// Whether reads of this file block the thread that asks for them.
  public boolean isLocal() {
    return local != null;
  }

  /// The identity of the file on this machine's disk that has the bytes: the file itself, or the
  /// file in the cache for a cached file. Null for a remote file.
  public @Nullable Identity onDisk() {
    return stored instanceof PosixFile present ? present.onDisk() : null;
  }

  /// Whether this is a remote file that is read from the cache.
  public boolean isCached() {
    return local != null && file instanceof Location.Remote;
  }

  /// Whether this is a remote file that is wholly in the cache by now: see [#local].
  public boolean isWhole() {
    return stored instanceof FileCache.Filling filling && filling.isWhole();
  }

  /// Opens the same file in the cache. The caller closes both.
  ///
  /// @throws TransferException if the cached file cannot be opened
  public SourceFile local(CachePolicy policy) {
    if (!(stored instanceof FileCache.Filling filling)) {
      throw new IllegalStateException("not cached: " + file);
    }
    LocalFile whole = filling.local(policy);
    return Cleanup.orUndo(() -> new SourceFile(file, whole, link), whole::close);
  }

  /// How many reads of this file may be under way at once, by its link's window and its store's
  /// limit.
  public int requestsAtOnce() {
    return link.requests(stored.requestsAtOnce());
  }

  /// How long a request must take to count as slow, in nanoseconds.
  long slowNanos(long bytes) {
    return link.slowNanos(bytes);
  }

  /// Notes that a request has delivered its bytes; see [LinkWindow#ended].
  void noteEnd(long bytes, long nanos, boolean full) {
    link.ended(bytes, nanos, full, stored.requestsAtOnce());
  }

  /// The file's descriptors, for transports that read the file themselves; a remote file has no
  /// descriptors.
  public Descriptors descriptors() {
    if (local != null) {
      return local.descriptors();
    }
    String scheme = file instanceof Location.Remote remote ? remote.scheme() : "these";
    String absence = scheme + " files have no descriptor";
    return Descriptors.none(
        stored instanceof FileCache.Filling
            ? absence + " until the cache has all of them"
            : absence);
  }

  /// The same as [LocalFile#inMemory]; false for a remote file.
  public boolean inMemory() {
    return local != null && local.inMemory();
  }

  /// The same as [LocalFile#residentBytes]; -1 for a remote file.
  public long residentBytes() {
    return local == null ? -1 : local.residentBytes();
  }

  /// The same as [LocalFile#residency]; hot for a remote file, which has no direct reads.
  public Residency residency(long offset, long length) {
    return local == null ? Residency.HOT : local.residency(offset, length);
  }

  /// Fills `target` from `offset` on, and returns when `target` is full. The file must have the
  /// first `required` bytes; it may end after them.
  ///
  /// @param target native memory
  /// @param direct whether to go past the page cache, as in [LocalFile#read]
  /// @return whether all bytes came past the page cache
  /// @throws TransferException on any failure, and at an end of the file before `required` bytes
  /// @throws MalformedFileException as [#requireUnchanged] says
  public boolean read(MemorySegment target, long offset, long required, boolean direct) {
    if (local != null) {
      boolean wentDirectly = local.read(target, offset, required, direct);
      requireUnchanged();
      return wentDirectly;
    }
    AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
    try (PendingReads reads = new PendingReads()) {
      for (long done = 0; done < required && failure.get() == null; done += REQUEST_BYTES) {
        long bytes = Math.min(REQUEST_BYTES, required - done);
        reads.start(
            this,
            target.asSlice(done, bytes),
            offset + done,
            bytes,
            () -> {},
            reason -> {
              if (failure.compareAndSet(null, reason)) {
                reads.cancel();
              }
            });
      }
      reads.drain();
    }
    Cleanup.rethrow(failure.get(), "a store failed");
    return false;
  }

  /// Ends the reads of a remote file that are under way; reads that begin later end at once. Reads
  /// of a local file are not ended.
  public void endReads() {
    ended.cancel();
  }

  /// Has `action` run once when [#endReads] is called.
  ///
  /// @return makes this file forget the action
  Runnable whenEnded(Runnable action) {
    return ended.whenCancelled(action);
  }

  /// The store's file, for asynchronous reads.
  StoredFile stored() {
    return stored;
  }

  /// The descriptor with which the file can be mapped.
  ///
  /// @throws MisuseException if the file has no descriptor
  public int mappable() {
    Descriptors descriptors = descriptors();
    if (descriptors.buffered() < 0) {
      throw new MisuseException(file + " cannot be mapped: " + descriptors.absence() + "; load it");
    }
    return descriptors.buffered();
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      LiveResources.add(LiveResources.Kind.OPEN_FILES, -1);
      stored.close();
    }
  }
}
