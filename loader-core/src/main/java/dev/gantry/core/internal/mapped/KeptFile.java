// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
import dev.gantry.core.internal.natives.Errno;
import dev.gantry.core.internal.natives.FileCalls;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;

/// A whole file in memory, from which the rows of a batch are gathered.
sealed interface KeptFile extends AutoCloseable permits MappedFile, CopiedFile {
  Location location();

  /// Returns the identity that the file had when it was opened.
  Object identity();

  /// Returns how many bytes of memory the file takes.
  long bytes();

  /// Returns the address of a byte of the file, for kernels.
  long address(long offset);

  /// Returns the file's bytes for the CPU. A mapped file has none: if the file is truncated meanwhile, reading
  /// the mapping would end the process.
  MemorySegment segment();

  /// @throws MalformedFileException of kind `changed-meanwhile` if the file was changed in place, so that the
  ///     bytes in memory may have changed, too
  void requireUnchanged();

  /// Frees the memory. Nothing may gather from it any more.
  @Override
  void close();

  /// @throws MalformedFileException of kind `changed-meanwhile` if an open file was changed in place
  static void requireUnchanged(FileCalls calls, SourceFile file) {
    if (!isUnchanged(calls, file)) {
      throw new MalformedFileException(
          file.file(), 0, "changed-meanwhile", "it was modified while it was read");
    }
  }

  /// Whether an open file is as it was when it was opened.
  static boolean isUnchanged(FileCalls calls, SourceFile file) {
    FileCalls.StatResult now = calls.stat(file.mappable());
    Errno.check(now.status(), "statx", file.file());
    SourceFile.Identity identity =
        new SourceFile.Identity(now.device(), now.inode(), now.size(), now.modifiedNanos());
    return identity.equals(file.onDisk());
  }
}
