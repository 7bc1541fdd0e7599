// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;

/// A [Store] that files can be copied to: where a training keeps its checkpoints besides its own disk.
/// Thread-safe.
public interface WritableStore extends Store {
  /// A file below a folder.
  ///
  /// @param name from the folder on, with `/` between its parts
  /// @param size in bytes
  record Entry(String name, long size) {}

  /// All files below a folder, also those in folders within. Files that are still being uploaded are
  /// not there.
  ///
  /// @return empty if there is no such folder
  /// @throws TransferException if the store does not answer
  List<Entry> below(Location folder);

  /// Copies a local file, and returns when the copy will last. Until then the target is as it was before: not
  /// there, or the older file with all its bytes.
  ///
  /// @throws TransferException if the file cannot be read, or the store does not take it
  void upload(Path file, Location target);

  /// Removes a file, or does nothing if it is gone.
  ///
  /// @throws TransferException if the store does not answer, or refuses
  void remove(Location file);

  /// Ends uploads that a process began and did not end, and frees what the store keeps of them.
  ///
  /// @param names of which files, as in [Entry#name]
  /// @throws TransferException if the store does not answer, or refuses
  void endUploads(Location folder, Predicate<String> names);
}
