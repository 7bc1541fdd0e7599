// SPDX-License-Identifier: Apache-2.0
package dev.gantry.core.internal.natives;

import dev.gantry.core.MisuseException;
import dev.gantry.core.TransferException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicReference;

/// A file that is registered with cuFile. Close it before its descriptor, and when no read or write of it is running;
/// closing twice does nothing. Thread-safe.
public final class CuFileHandle implements AutoCloseable {
  private final CuFile cuFile;
  private final Path file;
  private final int descriptor;
  private final AtomicReference<MemorySegment> opaque = new AtomicReference<>(MemorySegment.NULL);

  CuFileHandle(CuFile cuFile, Path file, int descriptor) {
    this.cuFile = cuFile;
    this.file = file;
    this.descriptor = descriptor;
  }

  /// @param handle libcufile's handle of the file
  void opened(MemorySegment handle) {
    opaque.set(handle);
  }

  MemorySegment opaque() {
    MemorySegment handle = opaque.get();
    if (handle.address() == 0) {
      throw new MisuseException("the cuFile handle of " + file + " is closed");
    }
    return handle;
  }

  /// Returns the number of bytes that a read or write of this file moved, or throws.
  ///
  /// libcufile has been seen to return a code without its sign. A positive number that equals a
  /// code is therefore a number of bytes only if it equals the requested number, or reaches the
  /// end of the file.
  ///
  /// @param operation the operation, for messages
  /// @throws TransferException if `returned` is not a number of bytes
  long count(String operation, long returned, int errno, long bytes, long fileOffset) {
    if (returned < 0 || returned > bytes || isCode(returned, bytes, fileOffset)) {
      throw new TransferException(
          operation,
          file + " at offset " + fileOffset + ", length " + bytes,
          CuFileFunction.transferFailure(returned, errno));
    }
    return returned;
  }

  private boolean isCode(long returned, long bytes, long fileOffset) {
    return returned < bytes
        && CuFileCode.of(Math.clamp(returned, 0, Integer.MAX_VALUE)).isPresent()
        && fileOffset + returned != Libc.INSTANCE.stat(descriptor).size();
  }

  @Override
  public void close() {
    MemorySegment handle = opaque.getAndSet(MemorySegment.NULL);
    if (handle.address() != 0) {
      cuFile.deregisterHandle(handle);
    }
  }
}
