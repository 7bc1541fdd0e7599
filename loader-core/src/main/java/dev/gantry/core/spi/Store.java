// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.Location;
import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// A place where files live, such as the local file system or an HTTP server.
///
/// [java.util.ServiceLoader] finds stores: name your class in
/// `META-INF/services/dev.gantry.core.spi.Store`, and give it a public constructor without
/// parameters that does no work. A session makes one instance of each store, and closes that
/// instance when the session is closed. Thread-safe.
public interface Store extends AutoCloseable {
  /// The URI schemes of this store's files, in lower case, such as `https`.
  Set<String> schemes();

  /// Opens a file for reading. The call should end when the calling thread is interrupted, since a load that is
  /// cancelled interrupts it.
  ///
  /// @param file a location with one of this store's schemes
  /// @param policy whether reads go through the kernel's page cache; a store without one ignores it
  /// @throws TransferException if the file is not there or cannot be read
  StoredFile open(Location file, CachePolicy policy);

  /// Lists the files of a folder, but not of its subfolders, so that weights and data sets of
  /// several files can be opened by the folder's name.
  ///
  /// @param folder a location with one of this store's schemes, with or without a slash at its end
  /// @return empty if this store cannot list; an empty list if there is no such folder
  /// @throws TransferException if the store does not answer
  default Optional<List<Location>> list(Location folder) {
    return Optional.empty();
  }

  /// Whether this store supports [#fetch].
  default boolean keepsFiles() {
    return false;
  }

  /// Copies a whole file to a disk of this machine, where later calls find it. Files of one remote
  /// folder are copied to one local folder.
  ///
  /// @throws MisuseException if this store keeps no files, as by default
  /// @throws TransferException if the file is not there, cannot be read, or cannot be written to
  ///     the disk
  default Path fetch(Location file) {
    throw new MisuseException(file + ": this store keeps no files on this machine; copy them");
  }

  /// Frees connections and threads. All files of the store are closed before this call.
  @Override
  default void close() {}
}
