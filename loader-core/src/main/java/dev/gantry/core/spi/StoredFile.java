// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import java.time.Instant;
import java.util.Optional;

/// One file of a [Store], open for reading. Thread-safe; [#close] only when no read is under way.
public interface StoredFile extends AutoCloseable {
  /// In bytes, when the file was opened.
  long size();

  /// The file, and its state when it was opened. Equal for the same file with the same bytes, and for no other.
  Object identity();

  /// The same as [#identity] in text that other processes understand, such as a strong ETag and the
  /// size. By it the file's bytes are found again in a local cache, also years later:
  /// equal for the same bytes, and for no others. Empty if there is no such text; the file is not
  /// cached then.
  default String version() {
    return "";
  }

  /// When the file was written, if the store tells. By it an index is not taken that is older than its file.
  default Optional<Instant> modified() {
    return Optional.empty();
  }

  /// How many reads under way at once suit this file, 1 or more.
  int requestsAtOnce();

  /// Begins to read, and may return before the read has ended; a store whose reads block may also
  /// return when it has. The read ends by exactly one call to [ReadRequest#completed] or
  /// [ReadRequest#failed]. From then on this store does not touch the target.
  ///
  /// Every byte is of the state that [#identity] names: if a remote file has changed, the read fails.
  /// Local files must not be written while they are read.
  ///
  /// @param request for bytes that the file had when it was opened
  void read(ReadRequest request);

  @Override
  void close();
}
