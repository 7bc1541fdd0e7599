// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import dev.gantry.core.TransferException;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Reads a remote file past the cache, when the disk fails on a file that the cache has as a whole. The first
/// read opens the remote file. Thread-safe.
final class PastReads implements AutoCloseable {
  private final RemoteCache cache;
  private final Object identity;
  private final Supplier<SourceFile> open;
  private @Nullable SourceFile remote;

  /// @param identity the identity that the remote file must have
  PastReads(RemoteCache cache, Object identity, Supplier<SourceFile> open) {
    this.cache = cache;
    this.identity = identity;
    this.open = open;
  }

  /// Fills `target` from the remote file, as [SourceFile#read] does.
  ///
  /// @param reason why the disk failed
  /// @throws TransferException if the remote file cannot be read either; this is `reason` if the file has changed
  void read(MemorySegment target, long offset, long required, TransferException reason) {
    cache.refuse(reason);
    SourceFile from = remote(reason);
    if (!from.identity().equals(identity)) {
      throw reason;
    }
    boolean _ = from.read(target, offset, required, false);
  }

  private synchronized SourceFile remote(TransferException reason) {
    SourceFile present = remote;
    if (present == null) {
      try {
        present = open.get();
      } catch (RuntimeException | Error e) {
        e.addSuppressed(reason);
        throw e;
      }
      remote = present;
    }
    return present;
  }

  @Override
  public synchronized void close() {
    if (remote != null) {
      remote.close();
    }
  }
}
