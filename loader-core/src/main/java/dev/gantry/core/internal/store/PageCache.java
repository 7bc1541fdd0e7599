// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import java.nio.file.Path;

/// The page cache's share in one local file, for those who measure.
public final class PageCache {
  private PageCache() {}

  /// How many bytes of a file are in the page cache; -1 where the kernel does not say.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  public static long residentBytes(Path file) {
    try (PosixFile open =
        PosixFile.open(FileCalls.ofPlatform(), file, CachePolicy.BUFFERED)) {
      return open.residentBytes();
    }
  }

  /// Asks the kernel to drop a file's pages. It keeps those that are mapped, and all of a file system
  /// in memory: what stays, this tells.
  ///
  /// @return how many bytes stay; -1 where the kernel does not say
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  public static long drop(Path file) {
    FileCalls calls = FileCalls.ofPlatform();
    try (PosixFile open = PosixFile.open(calls, file, CachePolicy.BUFFERED)) {
      int descriptor = open.descriptors().buffered();
      if (calls instanceof Libc libc && descriptor >= 0) {
        // Pages that are not on the disk yet would stay.
        var _ = libc.fsync(descriptor);
        var _ = libc.fadvise(descriptor, 0, 0, Libc.POSIX_FADV_DONTNEED);
      }
      return open.residentBytes();
    }
  }
}
