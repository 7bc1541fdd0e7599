// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.spi.LocalFile;
import dev.gantry.core.spi.StoredFile;
import java.util.function.Supplier;

/// Keeps remote files on a disk of this machine. Thread-safe.
public interface FileCache extends AutoCloseable {
  /// An open file whose bytes lie in one file on this machine's disk.
  interface OnDisk {
    /// That file's identity.
    SourceFile.Identity onDisk();
  }

  /// A remote file whose blocks come into the cache as they are read.
  interface Filling extends StoredFile {
    /// Whether all of it is in the cache.
    boolean isWhole();

    /// Opens it there, once it is whole.
    LocalFile local(CachePolicy policy);
  }

  /// Opens a file, out of the cache as far as it lies there.
  ///
  /// @param remote opens the file itself; not called where the caller asks for a version that is in the
  ///     cache as a whole
  StoredFile open(Location.Remote file, CachePolicy policy, Supplier<StoredFile> remote);

  /// All files are closed before.
  @Override
  void close();
}
