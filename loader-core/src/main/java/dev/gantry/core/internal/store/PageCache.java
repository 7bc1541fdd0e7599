// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.store;

import dev.gantry.core.CachePolicy;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.natives.Libc;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/// Measures and changes how much of a local file is in the page cache, for benchmarks.
public final class PageCache {
  private PageCache() {}

  /// Reads a whole file, so that its pages are in the page cache.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be read
  public static void warm(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      long _ = in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      throw FileErrors.of("read", file.toString(), e);
    }
  }

  /// How many bytes of a file are in the page cache; -1 if the kernel does not tell.
  ///
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  public static long residentBytes(Path file) {
    try (PosixFile open = new PosixFile(FileCalls.ofPlatform(), file, CachePolicy.BUFFERED)) {
      return open.residentBytes();
    }
  }

  /// Asks the kernel to drop a file's pages from the page cache. The kernel keeps pages that are
  /// mapped, and all pages of a file system in memory.
  ///
  /// @return how many bytes stay in the page cache; -1 if the kernel does not tell
  /// @throws dev.gantry.core.TransferException if the file cannot be opened
  public static long drop(Path file) {
    FileCalls calls = FileCalls.ofPlatform();
    try (PosixFile open = new PosixFile(calls, file, CachePolicy.BUFFERED)) {
      int descriptor = open.descriptors().buffered();
      if (calls instanceof Libc libc && descriptor >= 0) {
        // The pages are written to the disk first, since the kernel does not drop modified pages.
        var _ = libc.fsync(descriptor);
        var _ = libc.fadvise(descriptor, 0, 0, Libc.POSIX_FADV_DONTNEED);
      }
      return open.residentBytes();
    }
  }
}
