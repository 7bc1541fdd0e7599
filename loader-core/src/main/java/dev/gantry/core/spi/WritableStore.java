// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.Location;
import dev.gantry.core.TransferException;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Predicate;

/// A [Store] that files can be copied to, so that a training program can keep its checkpoints on
/// another machine. Thread-safe.
public interface WritableStore extends Store {
  /// A file below a folder.
  ///
  /// @param name the file's name below the folder, with `/` between its parts
  /// @param size in bytes
  record Entry(String name, long size) {}

  /// Lists all files below a folder, including the files of its subfolders, but not files that are
  /// still being uploaded.
  ///
  /// @return empty if there is no such folder
  /// @throws TransferException if the store does not answer
  List<Entry> below(Location folder);

  /// Copies a local file, and returns when the copy is durable. Before that, the target keeps its
  /// former state: it is missing, or it is the older file with all its bytes.
  ///
  /// @throws TransferException if the file cannot be read, or the store refuses it
  void upload(Path file, Location target);

  /// Removes a file, or does nothing if it is gone.
  ///
  /// @throws TransferException if the store does not answer, or refuses
  void remove(Location file);

  /// Aborts uploads that a process began and never finished, and frees the parts that the store
  /// keeps of them.
  ///
  /// @param names accepts the names of the files whose uploads are aborted, as in [Entry#name]
  /// @throws TransferException if the store does not answer, or refuses
  void endUploads(Location folder, Predicate<String> names);
}
