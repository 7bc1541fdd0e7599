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

  /// Opens a file, and reads what the cache has of it from there.
  ///
  /// @param remote opens the file in its store; not called if the caller asks for a version of which the cache has the
  ///     whole file
  StoredFile open(Location.Remote file, CachePolicy policy, Supplier<StoredFile> remote);

  /// Frees the cache. All its files are closed before this call.
  @Override
  void close();
}
