// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import java.time.Instant;
import java.util.Optional;

/// One file of a [Store], open for reading. Thread-safe; [#close] only when no read is under way.
public interface StoredFile extends AutoCloseable {
  /// The file's size in bytes when it was opened.
  long size();

  /// Identifies the file, and its state when it was opened. Two identities are equal if they are
  /// of the same file with the same bytes, and only then.
  Object identity();

  /// Returns [#identity] as a text that other processes understand, such as a strong ETag and the
  /// size. A local cache finds the file's bytes by this text, even years later, so two texts must
  /// be equal if the bytes are the same, and only then. If the text is empty, the file is not
  /// cached.
  default String version() {
    return "";
  }

  /// When the file was last written, if the store knows. An index that is older than its file is
  /// not used.
  default Optional<Instant> modified() {
    return Optional.empty();
  }

  /// The number of reads, 1 or more, that a caller should keep under way at once.
  int requestsAtOnce();

  /// Begins a read. The call may return before the read has ended; a store whose reads block may
  /// return after the end. The store ends the read by exactly one call to [ReadRequest#completed]
  /// or [ReadRequest#failed]. After this call the store does not touch the target.
  ///
  /// Every byte comes from the state of the file that [#identity] names: if a remote file has
  /// changed, the read fails. Local files must not be written while they are read.
  ///
  /// @param request asks only for bytes that the file had when it was opened
  void read(ReadRequest request);

  @Override
  void close();
}
