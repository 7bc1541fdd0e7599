// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.PosixFile;
import dev.gantry.core.internal.store.SourceFile;
import dev.gantry.core.spi.StoredFile;
import java.lang.foreign.MemorySegment;
import java.time.Instant;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A remote file that is wholly in the cache: a local file with the identity of the remote file.
/// If the disk fails to read some bytes, they are read from the remote file, which the first such
/// read opens. Thread-safe.
final class WholeFile extends PosixFile {
  /// A version of a remote file, as its store names it.
  record Version(
      Location.Remote file, Object identity, String text, long size, Optional<Instant> modified) {}

  private final RemoteCache cache;
  private final CachedFile cached;
  private final Version version;
  private final Supplier<StoredFile> open;
  private @Nullable SourceFile remote;

  /// @param cached the file's state in the cache; [#close] ends this use of it, and the cached
  ///     file is not removed before
  /// @param open opens the remote file
  WholeFile(
      RemoteCache cache,
      CachedFile cached,
      FileCalls calls,
      CachePolicy policy,
      Version version,
      Supplier<StoredFile> open) {
    super(calls, cached.entry().data(), policy);
    this.cache = cache;
    this.cached = cached;
    this.version = version;
    this.open = open;
  }

  @Override
  public Object identity() {
    return version.identity();
  }

  @Override
  public String version() {
    return version.text();
  }

  @Override
  public Optional<Instant> modified() {
    return version.modified();
  }

  /// @throws TransferException if neither the disk nor the remote file returns the bytes; if the
  ///     remote file has changed, the disk's failure is thrown
  @Override
  public boolean read(MemorySegment target, long offset, long required, boolean direct) {
    try {
      return super.read(target, offset, required, direct);
    } catch (TransferException e) {
      cache.refuse(e);
      boolean _ = remote(e).read(target, offset, required, false);
      return false;
    }
  }

  private synchronized SourceFile remote(TransferException reason) {
    SourceFile present = remote;
    if (present == null) {
      try {
        present = new SourceFile(version.file(), open.get());
      } catch (RuntimeException | Error e) {
        e.addSuppressed(reason);
        throw e;
      }
      remote = present;
    }
    if (!present.identity().equals(version.identity())) {
      throw reason;
    }
    return present;
  }

  @Override
  public synchronized void close() {
    try {
      super.close();
    } finally {
      try (SourceFile _ = remote) {
        cache.leave(cached);
      }
    }
  }
}
