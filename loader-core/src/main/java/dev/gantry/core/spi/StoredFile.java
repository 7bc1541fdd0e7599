// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import java.time.Instant;
import java.util.Optional;

/// One file of a [Store], open for reading. Thread-safe; [#close] only when no read is under way.
public interface StoredFile extends AutoCloseable {
  /// The file's size in bytes when it was opened.
  long size();

  /// The file, and its state when it was opened. Equal for the same file with the same bytes, and for no other.
  Object identity();

  /// The same as [#identity] in text that other processes understand, such as a strong ETag and the size. A local cache
  /// finds the file's bytes by it, also years later, so it must be equal for the same bytes and for no others. Empty if
  /// there is no such text; the file is not cached then.
  default String version() {
    return "";
  }

  /// When the file was written, if the store tells. An index that is older than its file is not used.
  default Optional<Instant> modified() {
    return Optional.empty();
  }

  /// How many reads under way at once suit this file, 1 or more.
  int requestsAtOnce();

  /// Begins a read. It may return before the read has ended; if the store's reads block, it may return afterwards. The
  /// read ends by exactly one call to [ReadRequest#completed] or [ReadRequest#failed]. From then on the store does not
  /// touch the target.
  ///
  /// Every byte is of the state that [#identity] names: if a remote file has changed, the read fails.
  /// Local files must not be written while they are read.
  ///
  /// @param request asks only for bytes that the file had when it was opened
  void read(ReadRequest request);

  @Override
  void close();
}
