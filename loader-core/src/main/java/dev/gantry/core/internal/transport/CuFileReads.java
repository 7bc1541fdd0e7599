// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.transport;

import dev.gantry.core.Failure;
import dev.gantry.core.TransferException;
import dev.gantry.core.internal.memory.CudaContext;
import dev.gantry.core.internal.natives.CuFile;
import dev.gantry.core.internal.natives.CuFileHandle;
import dev.gantry.core.internal.store.SourceFile;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Reads one file by cuFile. If cuFile reads fewer bytes than requested, the rest is requested
/// again. Thread-safe.
///
/// @param handle the cuFile registration of the descriptor that serves the reads
record CuFileReads(CuFile cuFile, SourceFile file, CuFileHandle handle) {
  /// Reads up to `length` bytes. The file must have the first `required` of them.
  ///
  /// @param to the context of the device that has the memory
  /// @param base the registered region that contains the memory, or the memory itself if it is not
  ///     registered
  void read(
      CudaContext to,
      MemorySegment base,
      long offset,
      long fileOffset,
      long length,
      long required) {
    long done = 0;
    try (var _ = to.enter()) {
      while (done < required) {
        long count = cuFile.read(handle, base, length - done, fileOffset + done, offset + done);
        requireSome("cuFileRead", count, fileOffset + done, required - done);
        done += count;
      }
    }
  }

  /// Fills several pieces of one device's memory, in one call of cuFile unless it reads fewer
  /// bytes than requested.
  ///
  /// @param pieces 2 to [CuFile#MAX_PIECES]
  void readTogether(CudaContext to, List<MemorySegment> pieces, long fileOffset) {
    long bytes = pieces.stream().mapToLong(MemorySegment::byteSize).sum();
    long done = 0;
    try (var _ = to.enter()) {
      while (done < bytes) {
        long count = cuFile.readTogether(handle, behind(pieces, done), fileOffset + done);
        requireSome("cuFileReadv", count, fileOffset + done, bytes - done);
        done += count;
      }
    }
  }

  private void requireSome(String operation, long count, long fileOffset, long missing) {
    if (count <= 0) {
      throw new TransferException(
          operation, file.file() + " offset " + fileOffset, new Failure.EndOfFile(missing));
    }
  }

  /// The memory that follows the first `done` bytes of `pieces`; the pieces have more bytes than
  /// that.
  static List<MemorySegment> behind(List<MemorySegment> pieces, long done) {
    int first = 0;
    long left = done;
    while (left >= pieces.get(first).byteSize()) {
      left -= pieces.get(first).byteSize();
      first++;
    }
    List<MemorySegment> rest = new ArrayList<>(pieces.subList(first, pieces.size()));
    rest.set(0, rest.getFirst().asSlice(left));
    return rest;
  }
}
