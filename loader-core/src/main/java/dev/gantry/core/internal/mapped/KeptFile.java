// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.mapped;

import dev.gantry.core.Location;
import dev.gantry.core.MalformedFileException;
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

  /// Returns the file's bytes for the CPU. A mapped file does not give them: if the file were
  /// truncated, reading the mapping would end the process.
  MemorySegment segment();

  /// @throws MalformedFileException of kind `changed-meanwhile` if the file was changed in place, so that the
  ///     bytes in memory may have changed, too
  void requireUnchanged();

  /// Frees the memory. No kernel or thread may gather from it any more.
  @Override
  void close();
}
