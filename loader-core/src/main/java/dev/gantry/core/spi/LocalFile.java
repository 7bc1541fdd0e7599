// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.spi;

import dev.gantry.core.TransferException;
import java.lang.foreign.MemorySegment;

/// A file that the calling thread reads by itself, such as a file of a local file system.
/// Transports ask the file for its descriptors, and which of its bytes are in the page cache.
public interface LocalFile extends StoredFile {
  /// The file's descriptors, for transports that read the file by its descriptors.
  Descriptors descriptors();

  /// Says how to read this range: a hot range through the page cache, any other range past it.
  /// Every range is hot if the file cannot be read past the page cache.
  Residency residency(long offset, long length);

  /// How much of the file lies in the page cache, in bytes; -1 where the kernel does not say.
  long residentBytes();

  /// Whether the file system keeps its files in memory, as tmpfs does.
  boolean inMemory();

  /// Fills `target` from `offset` on. The file may end after `required` bytes, but not before.
  ///
  /// @param direct whether to read past the page cache, where the alignment of offset, length and
  ///     address allows it
  /// @return whether all bytes came past the page cache
  /// @throws TransferException on any failure, and at an end of the file before `required` bytes
  boolean read(MemorySegment target, long offset, long required, boolean direct);

  @Override
  default int requestsAtOnce() {
    return 1;
  }

  /// Reads on the calling thread.
  @Override
  default void read(ReadRequest request) {
    try {
      boolean _ = read(request.target(), request.offset(), request.target().byteSize(), false);
    } catch (RuntimeException | Error e) {
      request.failed(e);
      return;
    }
    request.completed();
  }
}
