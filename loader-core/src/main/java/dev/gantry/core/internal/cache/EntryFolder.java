// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.cache;

import org.jspecify.annotations.Nullable;

/// The folder in which a cache keeps the entries of its files, by their keys. Thread-safe.
interface EntryFolder {
  /// The key of a version of a file.
  String key(WholeFile.Version version);

  /// Opens the entry of a file.
  ///
  /// @return null if there is no usable entry
  /// @throws dev.gantry.core.TransferException if the disk fails
  @Nullable CacheEntry find(String key, long size);

  /// Opens the entry of a file, or makes an empty one.
  ///
  /// @return null if the folder has no space for it
  /// @throws dev.gantry.core.TransferException if the disk fails, or is full
  @Nullable CacheEntry open(String key, long size);

  /// The cache calls this after all bytes of a file are on the disk.
  ///
  /// @throws dev.gantry.core.TransferException if the disk fails
  default void sealed(String key) {}

  /// The cache calls this if the disk failed when a file had all its bytes. Readers may have the
  /// entry open for long after that.
  default void failed(String key) {}

  /// The cache calls this after this process has closed an entry.
  ///
  /// @param failed whether the disk failed while the file was written
  void closed(String key, boolean failed);
}
