// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.StoredFile;
import java.util.function.Supplier;

/// Keeps remote files on a disk of this machine. Thread-safe.
public interface FileCache extends AutoCloseable {
  /// A remote file whose blocks are added to the cache as they are read.
  interface Filling extends StoredFile {
    /// Whether the whole file is in the cache.
    boolean isWhole();

    /// Opens the cached file, which must be whole.
    LocalFile local(CachePolicy policy);
  }

  /// Opens a file whose reads take bytes from the cache if the cache has them.
  ///
  /// @param remote opens the file in its store; not called if the location names a version of
  ///     which the cache has the whole file
  StoredFile open(Location.Remote file, CachePolicy policy, Supplier<StoredFile> remote);

  /// Frees the cache. All its files are closed before this call.
  @Override
  void close();
}
